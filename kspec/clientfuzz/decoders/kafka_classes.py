"""Kafka's own generated classes of one release as a decoder, in a long-lived Java process.

Samples are sent in batches, first headers and then bodies. The value is what the classes write
back; bytes left unread are reported. A batch that times out is repeated one by one, to find the
frame that hangs or ends the process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as LateError
from typing import Final

from kproto import Dialect
from kproto.framing import SIZE_LENGTH
from kproto.oracle.oracle import Answer, Op, Oracle, OracleStopped, Question, Refusal, recoded
from kproto.oracle.pairs import Counterpart, counterparts, exceptions, schemas
from kspec.clientfuzz.decoders.codecs import cut
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample

__all__ = ["KafkaClasses"]

BATCH_SECONDS: Final = 60.0
ONE_SECONDS: Final = 10.0
LEFT: Final = "left unread: "
NOT_WRITTEN: Final = "not written back: "


class KafkaClasses:
    """``release`` is a Kafka version such as 4.4.0; the name is then ``kafka-4.4.0``."""

    def __init__(self, release: str, dialect: Dialect) -> None:
        self.name = f"kafka-{release}"
        self._release = release
        self._dialect = dialect
        self._pairs: dict[str, Mapping[int, Counterpart]] = {}
        self._oracle = Oracle(release).__enter__()

    def close(self) -> None:
        self._oracle.close()

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        try:
            return self._judge(samples, BATCH_SECONDS)
        except (LateError, OracleStopped):
            self._restart()
        return [self._alone(sample) for sample in samples]

    def _alone(self, sample: Sample) -> Verdict:
        try:
            return self._judge([sample], ONE_SECONDS)[0]
        except (LateError, OracleStopped) as error:
            self._restart()
            outcome = "hung" if isinstance(error, LateError) else "died"
            return Verdict(outcome, text=str(error)[-300:])  # type: ignore[arg-type]

    def _restart(self) -> None:
        self._oracle.kill()
        self._oracle = Oracle(self._release).__enter__()

    def _judge(self, samples: Sequence[Sample], seconds: float) -> list[Verdict]:
        found: list[Verdict | None] = [None] * len(samples)
        headers: list[tuple[int, Question]] = []
        bodies: dict[int, tuple[Counterpart, bytes]] = {}
        for number, sample in enumerate(samples):
            frame, layout, verdict = cut(self._dialect, sample)
            if layout is None:
                # The network layer splits frames; these classes do not.
                found[number] = Verdict("not asked", text="" if verdict is None else verdict.text)
                continue
            header = self._pair(layout.header.MESSAGE_NAME, layout.header_version)
            body = self._pair(layout.body.MESSAGE_NAME, layout.version)
            if header is None or body is None:
                found[number] = Verdict("not asked", text=f"{self._release} does not have it")
                continue
            headers.append((number, Question(Op.RECODE, *header, frame[SIZE_LENGTH:])))
            bodies[number] = body, frame[SIZE_LENGTH:]
        pending: list[tuple[int, str, Question]] = []
        for (number, _), answer in zip(headers, self._ask(headers, seconds), strict=True):
            if isinstance(answer, Refusal):
                found[number] = Verdict("rejected", text=answer.text)
                continue
            read, written = recoded(answer)
            pair, data = bodies[number]
            pending.append((number, written.hex(), Question(Op.RECODE, *pair, data[read:])))
        questions = [(number, question) for number, _, question in pending]
        again: list[tuple[int, Question]] = []
        for (number, head, question), answer in zip(
            pending, self._ask(questions, seconds), strict=True
        ):
            found[number] = _verdict(head, question, answer)
            if isinstance(answer, Refusal):
                again.append((number, question._replace(op=Op.TO_JSON)))
        for (number, _), answer in zip(again, self._ask(again, seconds), strict=True):
            if not isinstance(answer, Refusal):
                refused = found[number]
                assert refused is not None
                found[number] = Verdict("accepted", "?", NOT_WRITTEN + refused.text)
        return [each for each in found if each is not None]

    def _ask(self, questions: Sequence[tuple[int, Question]], seconds: float) -> list[Answer]:
        if not questions:
            return []
        return self._oracle.submit([each for _, each in questions]).result(seconds)

    def _pair(self, name: str, version: int) -> Counterpart | None:
        """Return None if the release lacks the message or version, or has another layout."""
        if name not in self._pairs:
            self._pairs[name] = counterparts(self._oracle, schemas()[name])
        unlike = exceptions()[self._release]["not_compared"].get(name, {})
        return None if str(version) in unlike else self._pairs[name].get(version)


def _verdict(head: str, question: Question, answer: Answer) -> Verdict:
    if isinstance(answer, Refusal):
        return Verdict("rejected", text=answer.text)
    read, written = recoded(answer)
    left = len(question.data) - read
    return Verdict("accepted", f"{head} {written.hex()}", f"{LEFT}{left}" if left else "")
