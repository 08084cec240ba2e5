//! Maps and sets of small numbers that nobody chose to collide: states, outcomes, matrices.

pub(crate) use rustc_hash::{FxHashMap as QuickMap, FxHashSet as QuickSet};
