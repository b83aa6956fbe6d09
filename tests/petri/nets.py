"""Nets that several tests share, in few words."""

from __future__ import annotations

from tidings.petri.reading import net_from_document


def arcs(text):
    """``"cpu.job*2 disk.job@0.5"``: place, colour, perhaps a count, perhaps a share."""
    found = []
    for word in text.split():
        word, _, share = word.partition("@")
        word, _, count = word.partition("*")
        place, colour = word.split(".")
        arc = {"place": place, "colour": colour}
        found.append(
            arc
            | ({"count": int(count)} if count else {})
            | ({"share": float(share)} if share else {})
        )
    return found


def mode(take="", put="", **more):
    return {"take": arcs(take), "put": arcs(put), **more}


def net(places, transitions, colours=("job",)):
    """A net; a transition may be just its modes."""
    return net_from_document(
        {
            "tidings_net": 1,
            "colours": list(colours),
            "places": places,
            "transitions": {
                name: {"modes": modes} if isinstance(modes, list) else modes
                for name, modes in transitions.items()
            },
        }
    )


def queue(service, **more):
    """A place with a queue, served by one law."""
    return {"queue": {"service": service, **more}}


def queue_by_colour(services, **more):
    return {"queue": {"services": services, **more}}


def exponential(mean_s):
    return {"exponential": mean_s}


def come(put, every_s=1.0):
    return [mode(put=put, after=exponential(every_s))]
