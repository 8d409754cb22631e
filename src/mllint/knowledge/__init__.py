"""Facts about torch, paddle and their neighbours: typed tables, no code that looks at source.

``torch.txt``, ``paddle.txt`` and ``neighbour_tables`` are generated from installed packages
(``python -m mllint._dev knowledge``) and read by ``rows``; ``facts`` holds what a person wrote, each with its source,
``wrappers`` what is wrapped around modules; ``networks`` which networks of other packages ask for their mode,
``graph_layers`` which layers for graphs have weights;
``saved_tensors`` what each operation keeps for its backward pass; ``words`` how a training is spelled;
``pickles`` what is not read with ``weights_only``.
``lookup`` answers questions over all of them.
"""
