//! Fixes for the findings of walks and of models: changes of a module, each verified by another walk or lift, and
//! edits of its source text.

mod fix;
mod record;
mod source;

pub use fix::{
    ChangeKind, FixResult, KernelChange, MissingSync, WalkFixes, find_missing_sync, fix_races,
    fix_walk_findings,
};
pub use record::{CodeEdit, FixEdits, add_fixes, change_record, fix_edits};
pub use source::{EditableSource, InputWalk, RepairWalks, WalkedSource, repair_source};
