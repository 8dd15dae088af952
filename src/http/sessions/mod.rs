//! What callers of sessions see: routes, answers, and the seed's form of both. Who waits is known here and nowhere else.

pub mod answer;
pub mod ask;
pub mod desk;
pub mod document;
pub mod routes;
pub mod view;
pub mod words;

#[cfg(test)]
mod tests;
