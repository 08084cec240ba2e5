//! Fixes for message passing through atomics: a release at the store of a flag, an acquire at its load.
//!
//! The memory itself is made available and visible in the same change.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::Op;
use spirv_reader::SpirvOperation;

use super::candidates::ModuleCandidates;
use super::change::{ChangeKind, KernelChange};
use entry_point::accessed_variable::{ChangeSite, accessed_class, root_variable};
use results::wire::{InsertionAnchor, InsertionSide};
use symbolic::emit::AddedSemantics;

/// Upper bound on the pairs of atomics to try.
const MAX_HANDOVERS: usize = 24;

impl ModuleCandidates<'_> {
    /// Returns handovers for pairs of atomics on one variable, of which one may read the other's store.
    ///
    /// Pairs between the two racing accesses come first. An access that an earlier change made atomic counts
    /// as an atomic.
    pub(super) fn handover_changes(
        &mut self,
        sites: &[ChangeSite],
        class: StorageClass,
        raced_variables: &BTreeSet<u32>,
        applied: &[KernelChange],
    ) {
        let module = self.module;
        let made_atomic: Vec<ChangeSite> = applied
            .iter()
            .filter_map(|change| match &change.kind {
                ChangeKind::MakeAtomic { sites, .. } => Some(sites.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        let mut flags = Vec::new();
        for (id, function) in &module.functions {
            for (index, instruction) in function.code.iter().enumerate() {
                let site = ChangeSite { function: *id, index };
                let is_made = made_atomic.contains(&site);
                if !matches!(module.operation(instruction), SpirvOperation::Atomic(_)) && !is_made {
                    continue;
                }
                let Some(variable) = module
                    .operands_of(instruction)
                    .first()
                    .and_then(|at| root_variable(module, function, *at))
                else {
                    continue;
                };
                flags.push((site, instruction.op, variable, is_made));
            }
        }
        // Between functions the order is not known and counts as right.
        let may_follow =
            |flag: &ChangeSite, of: &ChangeSite| flag.function != of.function || flag.index > of.index;
        let mut combinations = Vec::new();
        for (store, store_op, store_variable, store_is_made) in &flags {
            for (load, load_op, load_variable, load_is_made) in &flags {
                let reads = |op: &Op| !matches!(op, Op::AtomicStore | Op::Store);
                let writes = |op: &Op| !matches!(op, Op::AtomicLoad | Op::Load);
                if store_variable != load_variable || !writes(store_op) || !reads(load_op) {
                    continue;
                }
                let [first, .., second] = sites else { continue };
                // The release belongs after the first access, and the acquire before the second.
                let out_of_place = |first: &ChangeSite, second: &ChangeSite| {
                    usize::from(!may_follow(store, first)) + usize::from(!may_follow(second, load))
                };
                let rank = out_of_place(first, second).min(out_of_place(second, first));
                let classes = match accessed_class(module, *store_variable) {
                    Some((own, _)) if own != class => vec![class, own],
                    _ => vec![class],
                };
                let mut combination: Vec<KernelChange> = Vec::new();
                if class != StorageClass::Workgroup {
                    let mut coherent = ModuleCandidates::new(module, self.shares_no_barrier);
                    raced_variables.iter().for_each(|root| coherent.add_coherent(*root, sites));
                    combination.extend(coherent.candidates);
                }
                combination.extend(self.handover_change(*store, *store_is_made, false, &classes));
                combination.extend(self.handover_change(*load, *load_is_made, true, &classes));
                combinations.push((rank, combination));
            }
        }
        combinations.sort_by_key(|(rank, _)| *rank);
        self.handovers = combinations.into_iter().take(MAX_HANDOVERS).map(|(_, way)| way).collect();
    }

    /// Returns the change that makes an atomic an acquire or release: its own semantics if possible, else a
    /// fence.
    fn handover_change(
        &self,
        site: ChangeSite,
        is_made: bool,
        acquires: bool,
        classes: &[StorageClass],
    ) -> Option<KernelChange> {
        let module = self.module;
        if module.uses_vulkan_model && !is_made {
            let more = AddedSemantics { acquire: acquires, release: !acquires, class: classes[0] };
            let anchor = InsertionAnchor::Atomic;
            return self.new_change(site, ChangeKind::StrengthenOrder { site, anchor, more });
        }
        let code = &module.functions.get(&site.function)?.code;
        let anchor = match (is_made, acquires) {
            (false, _) => InsertionAnchor::Atomic,
            (true, true) => InsertionAnchor::Read,
            (true, false) => InsertionAnchor::Write,
        };
        let side = if acquires { InsertionSide::After } else { InsertionSide::Before };
        // Words are inserted before an instruction: for an acquire, before the next one.
        let words = vec![module.first_word(code.get(site.index + usize::from(acquires))?)];
        self.new_change(site, ChangeKind::InsertFences { words, side, anchor, classes: classes.to_vec() })
    }
}
