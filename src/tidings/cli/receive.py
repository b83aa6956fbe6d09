"""``tidings receive``: spans that OpenTelemetry sends, appended to a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.errors import missing_extra

if TYPE_CHECKING:
    from tidings.serving.receiver import SpanReceiver


def receive(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder to append spans to, as OTLP JSON Lines."),
    ],
    port: options.Port = 4318,
    host: options.Host = "127.0.0.1",
    token: options.Token = None,
    every: Annotated[
        str,
        typer.Option(
            "--every", metavar="TIME", help="Begin a new file after this time, or after 64 MiB."
        ),
    ] = "1min",
    largest: Annotated[
        int,
        typer.Option(
            "--largest", metavar="MIB", min=1, max=1024, help="Largest export to accept, unpacked."
        ),
    ] = 20,
    time: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Receive spans from OpenTelemetry (OTLP/HTTP) and append them to a folder.

    Exporters send to the address that is printed; 'tidings import otlp FOLDER' reads the folder at
    any time. A span is on the disk before its sender is told so, and a file is seen when it is
    whole: the receiver may be killed and started again. Ctrl-C ends it.

    Example: tidings receive spans/ --port 4318
    """
    from tidings.model.writing import check_file

    try:
        from tidings.serving.guard import token_for
        from tidings.serving.listening import listen
        from tidings.serving.receiver import PATH, ReceiveSettings, SpanReceiver
    except ImportError as error:
        raise missing_extra(error, "otlp") or error from error
    for_s = None if time is None else options.seconds(time)
    check_file(folder / "spans.jsonl")
    settings = ReceiveSettings(
        folder=folder,
        token=token_for(host, token),
        file_s=options.seconds(every),
        most_bytes=largest << 20,
    )
    receiver = SpanReceiver(settings)
    try:
        with listen(receiver.app(), host=host, port=port, token=settings.token) as served:
            address = served.url.rstrip("/") + PATH
            _say_where(address, settings.token, receiver.appending.recovered, json=json)
            served.wait(for_s)
    finally:
        receiver.appending.close()
        _say_what(receiver, folder)


def _say_where(address: str, token: str, recovered: int, *, json: bool) -> None:
    if recovered:
        console.note(f"files of a receiver that was killed, now complete: {recovered}")
    if json:
        console.show_json({"url": address, "token": token, "recovered": recovered})
    else:
        console.show(address)
        console.note("Exporters want: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
        console.note(f"  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={address}")
        if token:
            console.note(f"  OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{token}")
        console.note("Ctrl-C ends it.")
    sys.stdout.flush()  # whoever started this in a pipe waits for it


def _say_what(receiver: SpanReceiver, folder: Path) -> None:
    counts = receiver.counts
    said = f"received {_many(counts.spans, 'span')} in {_many(counts.requests, 'request')}"
    if counts.refused_spans or counts.refused_requests:
        said += f"; refused {_many(counts.refused_spans, 'span')} of these"
        said += f" and {_many(counts.refused_requests, 'request')} whole"
    console.note(said)
    if counts.spans:
        console.note(f"next: tidings import otlp {folder} --to traces")


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
