"""
Neural activity
===============

Each neuron given the neurons around it: a Gaussian embedding, on a simulated recording.
"""

# %%
# ``efemb.read_matrix`` and ``read_suite2p`` read your own: frames x neurons, and where they are.
import efemb
from efemb.baselines import FactorAnalysis
from efemb.evaluation import compare
from efemb.plots import spatial_weights
from efemb.simulation import simulate_zebrafish

recording = simulate_zebrafish(n_neurons=800, n_frames=600, seed=0)
train, test = recording.data.split(test=0.1, seed=0)
print(train)

# %%
# The 50 nearest neurons are the context. Statistics of the frames are summed up once, so that
# steps do not depend on the number of frames.
model = efemb.GaussianEmbedding(20, context=efemb.Neighbors(50), random_state=0).fit(train)
factors = FactorAnalysis(20, random_state=0).fit(train)

# %%
# Leave one neuron out, or a quarter of them at a time.
print(compare({"g-emb": model, "factor analysis": factors}, test))
print(compare({"g-emb": model, "factor analysis": factors}, test, protocol="leave-fold-out"))

# %%
# Who excites whom: the paper's figure, in colours that everybody can tell apart.
ax = spatial_weights(model, palette="colorblind")
