//! The packager from outside: what goes in and what players get.

mod boxes;
mod cutting;
mod epochs;
mod feed;
mod goldens;
mod nonsense;
mod requests;
mod transport;
