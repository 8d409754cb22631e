"""Layers of libraries for graphs that have weights of their own, whatever networks they are given besides.

PyTorch Geometric by running it (2.8, ``tests/evidence/test_graph_layers.py``: each has parameters or buffers);
https://docs.dgl.ai/api/python/nn-pytorch.html by the constructors of DGL 2.1.
"""

from mllint.knowledge.schema import Class


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GEOMETRIC = _words("""
    AGNNConv ARMAConv AntiSymmetricConv BatchNorm CGConv ChebConv ClusterGCNConv DNAConv DenseGATConv DenseGCNConv
    DenseGraphConv DenseSAGEConv DiffGroupNorm EGConv EdgeCNN FAConv FastRGCNConv FeaStConv FiLMConv GAT GATConv
    GATv2Conv GCN GCN2Conv GCNConv GENConv GIN GINConv GINEConv GMMConv GatedGraphConv GeneralConv GraphConv GraphNorm
    GraphSAGE GraphUNet HGTConv HeteroLinear HypergraphConv LEConv LayerNorm LightGCN Linear MFConv MLP MixHopConv
    NNConv PANConv PDNConv PNAConv PointTransformerConv RGATConv RGCNConv ResGatedGraphConv SAGEConv SAGPooling SGConv
    SSGConv SchNet Set2Set SignedConv SplineConv SuperGATConv TAGConv TopKPooling TransformerConv
""")
_DEEP_GRAPH = _words("""
    AGNNConv AtomicConv CFConv ChebConv DGNConv DenseChebConv DenseGraphConv DenseSAGEConv DotGatConv EGATConv EGNNConv
    EdgeConv EdgeGATConv EdgePredictor GATConv GATv2Conv GCN2Conv GINConv GINEConv GMMConv GatedGCNConv GatedGraphConv
    GraphConv HGTConv HeteroEmbedding HeteroLinear NNConv PNAConv RelGraphConv SAGEConv SGConv Set2Set TAGConv TransE
    TransR TypedLinear WeightAndSum
""")
_HOMES = {"torch_geometric": GEOMETRIC, "dgl": _DEEP_GRAPH}


def layer(name: str) -> Class | None:
    """Such a layer by its qualified name, wherever in its package that is: ``torch_geometric.nn.conv.GCNConv``."""
    root, _, inner = name.partition(".")
    package, _, last = inner.rpartition(".")
    is_known = last in _HOMES.get(root, ()) and (package == "nn" or package.startswith("nn."))
    return Class("layer") if is_known else None


def is_batch_normalization(name: str) -> bool:
    """Whether it is batch normalization for graphs (run: in training mode it takes the statistics of the batch)."""
    return name.startswith("torch_geometric.nn.") and name.endswith(".BatchNorm")
