"""ML2xx: graph, gradients, memory held by the graph."""
