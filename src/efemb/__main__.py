"""`python -m efemb` is the command `efemb`."""

from efemb.cli import main

if __name__ == "__main__":
    main()
