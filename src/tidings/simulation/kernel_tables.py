"""The accessors of the world's tables: (world, position) -> record, or (world) -> array."""

from __future__ import annotations

from tidings.simulation.kernel_layout import LAYOUT

law_at = LAYOUT.table("laws")
publisher_at = LAYOUT.table("publishers")
row_at = LAYOUT.table("rows")
broker_at = LAYOUT.table("brokers")
channel_at = LAYOUT.table("channels")
receiver_at = LAYOUT.table("receivers")
out_first_at = LAYOUT.table("out_first")
out_arc_at = LAYOUT.table("out_arcs")
interest_at = LAYOUT.table("interest")
cell_of_at = LAYOUT.table("cell_of")
curve_of_at = LAYOUT.table("curve_of")
receivers_first_at = LAYOUT.table("receivers_first")
receivers_of_at = LAYOUT.table("receivers_of")

station_at = LAYOUT.table("stations")
server_at = LAYOUT.table("servers")
copy_at = LAYOUT.table("copies")
publication_at = LAYOUT.table("publications")
node_at = LAYOUT.table("nodes")
landing_at = LAYOUT.table("flight")

cell_at = LAYOUT.table("cells")
curve_at = LAYOUT.table("curves")
receipt_at = LAYOUT.table("receipts")
receiver_curve_at = LAYOUT.table("receiver_curves")
sample_at = LAYOUT.table("samples")

taped_publication_at = LAYOUT.table("tape_publications")
taped_hop_at = LAYOUT.table("tape_hops")
taped_send_at = LAYOUT.table("tape_sends")
taped_delivery_at = LAYOUT.table("tape_deliveries")

nodes_of = LAYOUT.array("nodes")
flight_of = LAYOUT.array("flight")
streams_of = LAYOUT.array("streams", columns=4)
law_params_of = LAYOUT.array("law_params")
bin_guess_of = LAYOUT.array("bin_guess")
bin_edges_of = LAYOUT.array("bin_edges")
