//! Cases of command queues, handlers, transfers of the NICAM interface, and fuzzy barriers.

pub mod command_actions;
pub mod command_order;
pub mod command_queues;
pub mod failed_commands;
pub mod fuzzy_barriers;
pub mod handlers;
pub mod long_calls;
pub mod nicam_transfers;
pub mod offloaded_commands;
