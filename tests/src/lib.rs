//! Helpers for the black-box tests: a gateway process, real clients and validators.
