//! Fixes for the findings of walks and of models.

mod fix;

pub use fix::{
    ChangeKind, FixResult, InsertionAnchor, InsertionSide, KernelChange, MissingSync, WalkFixes,
    find_missing_sync, fix_races, fix_walk_findings,
};
