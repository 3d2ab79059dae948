"""
Neural activity
===============

A Gaussian embedding predicts each neuron from the neurons around it, on a simulated recording.
"""

# %%
# To read your own recording (frames x neurons, with positions), use ``efemb.read_traces`` or
# ``efemb.read_suite2p``.
import efemb
from efemb.baselines import FactorAnalysis
from efemb.evaluation import compare
from efemb.plots import spatial_weights
from efemb.simulation import simulate_zebrafish

recording = simulate_zebrafish(n_neurons=800, n_frames=600, seed=0)
train, test = recording.data.split(test=0.1, seed=0)
print(train)

# %%
# The context is the 50 nearest neurons. The frames are summarized once, so the cost of a step does
# not depend on the number of frames.
model = efemb.GaussianEmbedding(20, context=efemb.Neighbors(50), random_state=0).fit(train)
factors = FactorAnalysis(20, random_state=0).fit(train)

# %%
# Leave one neuron out, or a quarter of them at a time.
print(compare({"g-emb": model, "factor analysis": factors}, test))
print(compare({"g-emb": model, "factor analysis": factors}, test, protocol="leave-fold-out"))

# %%
# Which neurons excite or inhibit each other: the paper's figure, in colorblind-safe colors.
ax = spatial_weights(model, palette="colorblind")

# %%
# All neurons at their positions: click one to see the weights of its neighbors.
page = efemb.explore.prepare(model, data=train, test=test, names="Simulated recording")
