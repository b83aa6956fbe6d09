r"""How often an event of a flow visits each node: the traffic equations.

With :math:`\nu_{ij}` the probability that an event at node i arrives at node j next (sent and not
lost), the visit ratios of a flow that begins at node h solve

.. math:: V_j = \delta_{jh} + \sum_i V_i \nu_{ij}.

Routing may go in circles, as long as what comes round is less than what went.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tidings.errors import UnstableError
from tidings.model.arrays import Floats
from tidings.model.flow_balance import balanced, worst_circle
from tidings.model.workload import Flow, Workload


def visit_ratios(workload: Workload, flow: Flow) -> Floats:
    """Compute the mean number of visits of one published event to every node.

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
    source = workload.sources[flow.source]
    routing = routing_matrix(workload, flow)
    begin = np.zeros(len(workload.nodes))
    begin[source.home] = source.reliability
    visits = balanced(routing, begin)
    if visits is None:
        around, nodes = worst_circle(routing, begin)
        names = ", ".join(workload.nodes[node].name for node in nodes[:8])
        raise UnstableError(
            f"events ({workload.name_of(flow)}) circulate forever among {names}: each "
            f"passage forwards {around:.3g} copies, where less than 1 is needed. Lower "
            "the forwarding probabilities there"
        )
    return visits


def routing_matrix(workload: Workload, flow: Flow) -> sparse.csr_array:
    """Compute ν: the probability that an event at a node (row) arrives at another (column) next."""
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
