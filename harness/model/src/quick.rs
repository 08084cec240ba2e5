//! Fast hash maps and sets for trusted keys (states, outcomes, matrices), without protection against chosen
//! collisions.

pub(crate) use rustc_hash::{FxHashMap as QuickMap, FxHashSet as QuickSet};
