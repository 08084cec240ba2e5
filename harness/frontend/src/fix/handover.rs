//! Fixes for message passing through atomics: a release at the store of a flag, an acquire at its load.
//!
//! The memory itself is made available and visible in the same change.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::Op;
use spirv_reader::SpirvOperation;

use super::candidates::ModuleCandidates;
use super::change::{KernelChange, ModuleChange};
use crate::accessed_variable::{ChangeSite, accessed_class, root_variable};
use crate::emit::AddedSemantics;

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
            .filter_map(|change| match &change.change {
                ModuleChange::MakeAtomic(sites, _) => Some(sites.clone()),
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
                    let mut coherent = ModuleCandidates {
                        candidates: Vec::new(),
                        handovers: Vec::new(),
                        last_resort: None,
                        ..*self
                    };
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
            let order = super::order_words(acquires, !acquires);
            let text = format!("give this atomic {order} semantics on {}", super::class_words(classes[0]));
            let more = AddedSemantics { acquire: acquires, release: !acquires, class: classes[0] };
            return self.new_change(site, text, ModuleChange::StrengthenOrder(site, more));
        }
        let code = &module.functions.get(&site.function)?.code;
        let memory = match classes {
            [one] => self.language.memory_barrier(*one),
            _ => self.language.full_memory_barrier(),
        };
        let here = match (is_made, acquires) {
            (false, _) => "this atomic",
            (true, true) => "this read",
            (true, false) => "this write",
        };
        let side = if acquires { "after" } else { "before" };
        // Words are inserted before an instruction: for an acquire, before the next one.
        let at = module.first_word(code.get(site.index + usize::from(acquires))?);
        let make = ModuleChange::InsertFences(vec![at], classes.to_vec());
        self.new_change(site, format!("put `{memory}` {side} {here}"), make)
    }
}
