//! Who may ask what of the control listener: the table of route and role, the gate before every route, and what it refused.

pub mod asked;
pub mod gate;
pub mod refusals;
pub mod routes;
