"""The systems that other solvers answer, too."""

from __future__ import annotations

SHOP = """
tidings: 1
lifetime: 1s
brokers:
  hub: {service: {exponential: 4ms}}
  east: {service: {exponential: 5ms}}
  west: {service: {exponential: 8ms}}
links:
  - {between: [hub, east], delay: {exponential: 10ms}, reliability: 0.9}
  - {between: [hub, west], delay: {exponential: 20ms}}
publishers:
  shop: {at: hub, every: {exponential: 9ms}, content: {event: {region: eu}}}
  till: {at: east, every: {exponential: 20ms}, content: {event: {region: us}}}
subscribers:
  stock: {at: east, wants: {region: eu}}
  billing: {at: west, wants: {region: us}}
"""

LINE = """
tidings: 1
lifetime: {lifetime_s}s
brokers:
  first: {{service: {service}, servers: {servers}}}
  second: {{service: {service}, servers: {servers}}}
  third: {{service: {service}, servers: {servers}}}
links:
  - {{between: [first, second]}}
  - {{between: [second, third]}}
publishers: {{pump: {{at: first, every: {every}, content: {{event: {{x: 1}}}}}}}}
subscribers: {{gauge: {{at: third, wants: {{}}}}}}
"""

QUEUE = """
tidings: 1
lifetime: {lifetime_s!r}s
brokers: {{hub: {{service: {{gamma: {{mean: 8ms, shape: 0.5}}}}}}}}
publishers: {{pump: {{at: hub, every: {{exponential: 12ms}}, content: {{event: {{x: 1}}}}}}}}
subscribers: {{gauge: {{at: hub, wants: {{}}, link: {{delay: {{exponential: 20ms}}}}}}}}
"""

BUFFERS = """
tidings: 1
lifetime: 10s
brokers:
  first: {service: {exponential: 8ms}, buffer: 3}
  second: {service: {exponential: 9ms}, buffer: 4}
links: [{between: [first, second]}]
publishers: {pump: {at: first, every: {exponential: 10ms}, content: {event: {x: 1}}}}
subscribers: {gauge: {at: second, wants: {}}}
"""
