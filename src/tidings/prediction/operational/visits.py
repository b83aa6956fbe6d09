r"""How often an event of a flow visits each node: the traffic equations.

With :math:`\nu_{ij}` the probability that an event at node i arrives at node j next (sent and not
lost), the visit ratios of a flow that begins at node h solve

.. math:: V_j = \delta_{jh} + \sum_i V_i \nu_{ij}.

Routing may go in circles, as long as what comes round is less than what went: the spectral radius
of :math:`\nu` must be below 1. A solution without negative numbers exists just then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidings.errors import UnstableError
from tidings.model.workload import Flow, Workload

Floats = NDArray[np.float64]

_DENSE = 200  # nodes up to which plain matrices are as fast


def visit_ratios(workload: Workload, flow: Flow) -> Floats:
    """Mean number of visits of one published event to every node.

    >>> from tidings.model.laws import Exponential
    >>> from tidings.model.workload import Connection, Node, Source
    >>> net = Workload(  # half of what visits a goes to b, a quarter of that comes back
    ...     nodes=(Node(name="a"), Node(name="b")),
    ...     connections=(Connection(source=0, target=1), Connection(source=1, target=0)),
    ...     sources=(Source(name="p", home=0, every=Exponential(mean_s=1.0)),),
    ...     flows=(Flow(source=0, event_type="", forwarding=((0, 0.5), (1, 0.25))),),
    ... )
    >>> [round(float(each), 12) for each in visit_ratios(net, net.flows[0])]
    [1.142857142857, 0.571428571429]
    """
    count = len(workload.nodes)
    source = workload.sources[flow.source]
    routing = routing_matrix(workload, flow)
    seen = csgraph.breadth_first_order(routing, source.home, return_predecessors=False)
    part = routing[seen][:, seen]
    begin = np.zeros(len(seen))
    begin[np.flatnonzero(seen == source.home)] = source.reliability
    found = _solved(part, begin)
    if not (np.all(np.isfinite(found)) and np.all(found >= 0.0)):
        raise UnstableError(_endless(workload, flow, part, seen))
    visits = np.zeros(count)
    visits[seen] = found
    return visits


def routing_matrix(workload: Workload, flow: Flow) -> sparse.csr_array:
    """ν: the probability that an event at a node (row) arrives at another one (column) next."""
    count = len(workload.nodes)
    used = [(workload.connections[at], share) for at, share in flow.forwarding if share > 0.0]
    return sparse.coo_array(
        (
            [share * each.reliability for each, share in used],
            ([each.source for each, _ in used], [each.target for each, _ in used]),
        ),
        shape=(count, count),
        dtype=np.float64,
    ).tocsr()


def _solved(routing: sparse.csr_array, begin: Floats) -> Floats:
    """(I − νᵀ)⁻¹ begin; NaN where there is no solution."""
    size = begin.size
    try:
        if size <= _DENSE:
            found: Floats = np.linalg.solve(np.eye(size) - routing.toarray().T, begin)
            return found
        matrix = sparse.eye_array(size, format="csc") - routing.T.tocsc()
        solution: Floats = sparse_linalg.splu(matrix).solve(begin)
        return solution
    except (np.linalg.LinAlgError, RuntimeError):  # singular
        return np.full(size, np.nan)


def _endless(
    workload: Workload, flow: Flow, routing: sparse.csr_array, seen: NDArray[np.int64]
) -> str:
    """What to say of events that multiply on a round trip: which nodes, and by how much."""
    parts, member = csgraph.connected_components(routing, directed=True, connection="strong")
    worst, nodes = -1.0, np.zeros(0, dtype=np.int64)
    for part in range(parts):
        inside = np.flatnonzero(member == part)
        block = routing[inside][:, inside].toarray()
        growth = float(np.abs(np.linalg.eigvals(block)).max())
        if growth > worst:
            worst, nodes = growth, seen[inside]
    names = ", ".join(workload.nodes[node].name for node in nodes[:8])
    return (
        f"events ({workload.name_of(flow)}) go round for ever among {names}: each passage sends "
        f"{worst:.3g} on, where less than 1 is wanted. Lower the forwarding probabilities there"
    )
