"""crowdperf.harness.runner.dialogues: turns of conversations wait for the answers before them."""

from harness_libraries import need

need("numpy")
from crowdperf.harness.runner.dialogues import Dialogues  # noqa: E402
from crowdperf.harness.text.engine import Prompt, Request  # noqa: E402


def turn(number: int, conversation: int, place: int) -> Request:
    messages = ({"role": "user", "content": f"{conversation}.{place}"},)
    return Request(number=number, prompt=Prompt(messages=messages, conversation=conversation, turn=place))


def said(requests: list[Request]) -> list[tuple[int, list[str]]]:
    return [(one.number, [message["content"] for message in one.prompt.messages or ()]) for one in requests]


def test_a_turn_is_sent_after_the_answer_before_it_with_the_history() -> None:
    dialogues = Dialogues(1)
    begun = dialogues.begin([turn(0, 7, 1), turn(1, 8, 0), turn(2, 7, 0), turn(3, 7, 2)])
    assert said(begun) == [(2, ["7.0"])]
    (second,) = dialogues.answered(2, "yes")
    assert said([second]) == [(0, ["7.0", "yes", "7.1"])]
    assert [message["role"] for message in second.prompt.messages or ()] == ["user", "assistant", "user"]
    assert said(dialogues.answered(0, "no")) == [(3, ["7.0", "yes", "7.1", "no", "7.2"])]
    assert said(dialogues.answered(3, "end")) == [(1, ["8.0"])]
    assert dialogues.answered(1, "end") == [] == dialogues.answered(99, "unknown")


def test_turns_after_a_failed_one_are_not_sent_and_other_conversations_go_on() -> None:
    dialogues = Dialogues(1)
    dialogues.begin([turn(0, 7, 0), turn(1, 7, 1), turn(2, 7, 2), turn(3, 8, 0)])
    numbers, begun = dialogues.failed(0)
    assert (numbers, said(begun)) == ([1, 2], [(3, ["8.0"])])
    assert dialogues.failed(0) == ([], [])


def test_without_a_limit_all_conversations_begin_and_a_repeated_one_is_another() -> None:
    begun = Dialogues(None).begin([turn(0, 7, 0), turn(1, 7, 1), turn(2, 7, 0), turn(3, 7, 1)])
    assert sorted(one.number for one in begun) == [0, 2]


def test_an_ended_conversation_makes_room_for_one_other() -> None:
    dialogues = Dialogues(1)
    dialogues.begin([turn(0, 7, 0), turn(1, 8, 0), turn(2, 9, 0)])
    assert said(dialogues.answered(0, "end")) == [(1, ["8.0"])]
