//! Cases of collective calls and plans.

pub mod cached_schedules;
pub mod call_forms;
pub mod chunked_plans;
pub mod collectives;
pub mod combining_order;
pub mod crossed_waits;
pub mod dropped_communicators;
pub mod extremes;
pub mod failed_communicators;
pub mod inline_plans;
pub mod neighbourhood_collectives;
pub mod nonblocking_collectives;
pub mod plan_data;
pub mod plan_lifetime;
pub mod plans;
pub mod refused_calls;
pub mod vector_collectives;
