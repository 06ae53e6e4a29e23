"""What choosing among implementations cost, and whether the library would have done."""

import pytest

from ett_core.choosing import LIBRARY, Choice, OperationAdvice, advise_choices, kind_of


@pytest.mark.parametrize(
    ("winner", "kind"),
    [
        ("mm", LIBRARY),
        ("bias_addmm", LIBRARY),
        ("_mkl_linear", LIBRARY),
        ("triton_mm_17", "triton_mm"),
        ("triton_flex_attention_0", "triton_flex_attention"),
        ("cpp_packed_gemm_3", "cpp_packed_gemm"),
        ("cpp_CppMicroGemmFP32Vec_5", "cpp_CppMicroGemmFP32Vec"),
    ],
)
def test_numbers_of_candidates_are_no_kinds(winner, kind):
    assert kind_of(winner) == kind


def test_the_dearest_operation_comes_first_with_what_won():
    choices = [
        Choice(operation="bmm", took_s=1.0, candidates=4, winner="bmm"),
        Choice(operation="mm", took_s=2.0, candidates=9, winner="triton_mm_1"),
        Choice(operation="mm", took_s=3.0, candidates=20, winner="triton_mm_8"),
        Choice(operation="mm", took_s=1.0, winner="mm"),
    ]
    assert advise_choices(choices) == [
        OperationAdvice(
            operation="mm",
            choices=3,
            took_s=6.0,
            candidates=20,
            winners=(("triton_mm", 2), (LIBRARY, 1)),
            library_alone=False,
        ),
        OperationAdvice(
            operation="bmm",
            choices=1,
            took_s=1.0,
            candidates=4,
            winners=((LIBRARY, 1),),
            library_alone=True,
        ),
    ]


def test_of_a_choice_whose_winner_nobody_told_the_library_is_not_said_to_have_won():
    (told,) = advise_choices(
        [Choice(operation="mm", took_s=1.0), Choice(operation="mm", took_s=1.0, winner="mm")]
    )
    assert (told.winners, told.library_alone) == (((LIBRARY, 1),), False)
