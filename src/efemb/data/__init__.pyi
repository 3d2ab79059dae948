from .align import aligned
from .columns import CellTable
from .corpus import Corpus
from .dataset import Dataset
from .partition import split
from .price_tables import Prices, prices
from .readers.matrix import read_matrix
from .readers.neural import read_suite2p, read_traces
from .readers.shop_tables import read_features
from .readers.text.read import read_text
from .readers.transactions import read_baskets
from .state_tables import indicators
from .vocabulary import Vocabulary

__all__ = [
    "CellTable",
    "Corpus",
    "Dataset",
    "Prices",
    "Vocabulary",
    "aligned",
    "indicators",
    "prices",
    "read_baskets",
    "read_features",
    "read_matrix",
    "read_suite2p",
    "read_text",
    "read_traces",
    "split",
]
