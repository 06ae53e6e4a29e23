"""PromQL of the boards, apart from their panels."""
