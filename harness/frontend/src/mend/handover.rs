//! Fixes for message passing through atomics: a release at the store of a flag, an acquire at its load.
//!
//! The memory itself is made available and visible in the same change.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::Op;
use spirv_reader::SpirvOperation;

use super::candidates::ModuleCandidates;
use super::change::{KernelChange, ModuleChange};
use crate::accessed::{ChangeSite, accessed_class, root_variable};
use crate::emit::Ordering;

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
        raced: &BTreeSet<u32>,
        made: &[KernelChange],
    ) {
        let module = self.module;
        let made: Vec<ChangeSite> = made
            .iter()
            .filter_map(|change| match &change.make {
                ModuleChange::Atomic(sites, _) => Some(sites.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        let mut flags = Vec::new();
        for (id, function) in &module.functions {
            for (index, one) in function.code.iter().enumerate() {
                let site = ChangeSite { function: *id, index };
                let is_made = made.contains(&site);
                if !matches!(module.operation(one), SpirvOperation::Atomic(_)) && !is_made {
                    continue;
                }
                let Some(of) =
                    module.operands_of(one).first().and_then(|at| root_variable(module, function, *at))
                else {
                    continue;
                };
                flags.push((site, one.op, of, is_made));
            }
        }
        // Between functions the order is not known and counts as right.
        let behind =
            |flag: &ChangeSite, of: &ChangeSite| flag.function != of.function || flag.index > of.index;
        let mut ways = Vec::new();
        for (giver, gives, of, giver_made) in &flags {
            for (taker, takes, by, taker_made) in &flags {
                let reads = |op: &Op| !matches!(op, Op::AtomicStore | Op::Store);
                let writes = |op: &Op| !matches!(op, Op::AtomicLoad | Op::Load);
                if of != by || !writes(gives) || !reads(takes) {
                    continue;
                }
                let [first, .., second] = sites else { continue };
                // The release belongs after the first access, and the acquire before the second.
                let out_of_place = |first: &ChangeSite, second: &ChangeSite| {
                    usize::from(!behind(giver, first)) + usize::from(!behind(second, taker))
                };
                let rank = out_of_place(first, second).min(out_of_place(second, first));
                let classes = match accessed_class(module, *of) {
                    Some((own, _)) if own != class => vec![class, own],
                    _ => vec![class],
                };
                let mut way: Vec<KernelChange> = Vec::new();
                if class != StorageClass::Workgroup {
                    let mut declared =
                        ModuleCandidates { found: Vec::new(), handed: Vec::new(), last: None, ..*self };
                    raced.iter().for_each(|root| declared.add_coherent(*root, sites));
                    way.extend(declared.found);
                }
                way.extend(self.handover_change(*giver, *giver_made, false, &classes));
                way.extend(self.handover_change(*taker, *taker_made, true, &classes));
                ways.push((rank, way));
            }
        }
        ways.sort_by_key(|(rank, _)| *rank);
        self.handed = ways.into_iter().take(MAX_HANDOVERS).map(|(_, way)| way).collect();
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
        if module.vulkan && !is_made {
            let order = super::order_words(acquires, !acquires);
            let text = format!("give this atomic {order} semantics on {}", super::class_words(classes[0]));
            let more = Ordering { acquire: acquires, release: !acquires, class: classes[0] };
            return self.new_change(site, text, ModuleChange::Ordered(site, more));
        }
        let code = &module.functions.get(&site.function)?.code;
        let memory = match classes {
            [one] => self.language.memory_barrier(*one),
            _ => self.language.all_memory(),
        };
        let here = match (is_made, acquires) {
            (false, _) => "this atomic",
            (true, true) => "this read",
            (true, false) => "this write",
        };
        let side = if acquires { "after" } else { "before" };
        // Words are inserted before an instruction: for an acquire, before the next one.
        let at = module.first_word(code.get(site.index + usize::from(acquires))?);
        let make = ModuleChange::Fences(vec![at], classes.to_vec());
        self.new_change(site, format!("put `{memory}` {side} {here}"), make)
    }
}
