"""What a model is: ingredients, parameters, the objective and its predictions; NumPy only."""
