//! Changes that hand memory over by atomics: a release where a flag is given, an acquire where it is taken, and what makes the
//! memory reach others.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::Op;

use super::walked::{Candidates, Make, Site, WalkedChange, class_of, is_atomic, root};

/// Pairs of atomics by which memory may be handed over, which are tried at most.
const MAX_HANDOVERS: usize = 24;

impl Candidates<'_> {
    /// For pairs of atomics at one variable, of which one may find what the other has left: what makes the one a release and the
    /// other an acquire of a class, together with what makes its memory reach others. Those are first that stand behind the first
    /// access and before the second one; what was made atomic before is one.
    pub(super) fn handovers(
        &mut self,
        sites: &[Site],
        class: StorageClass,
        raced: &BTreeSet<u32>,
        made: &[WalkedChange],
    ) {
        let module = self.module;
        let made: Vec<Site> = made
            .iter()
            .filter_map(|change| match &change.make {
                Make::Atomic(sites, _) => Some(sites.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        let mut flags = Vec::new();
        for (id, function) in &module.functions {
            for (index, one) in function.code.iter().enumerate() {
                let site = Site { function: *id, index };
                let is_made = made.contains(&site);
                if !is_atomic(one.op) && !is_made {
                    continue;
                }
                let Some(of) = module.operands(one).first().and_then(|at| root(module, function, *at)) else {
                    continue;
                };
                flags.push((site, one.op, of, is_made));
            }
        }
        let behind = |flag: &Site, of: &Site| flag.function != of.function || flag.index > of.index;
        let mut ways = Vec::new();
        for (giver, gives, of, giver_made) in &flags {
            for (taker, takes, by, taker_made) in &flags {
                let reads = |op: &Op| !matches!(op, Op::AtomicStore | Op::Store);
                let writes = |op: &Op| !matches!(op, Op::AtomicLoad | Op::Load);
                if of != by || !writes(gives) || !reads(takes) {
                    continue;
                }
                let [first, .., second] = sites else { continue };
                let out_of_place = |first: &Site, second: &Site| {
                    usize::from(!behind(giver, first)) + usize::from(!behind(second, taker))
                };
                let rank = out_of_place(first, second).min(out_of_place(second, first));
                let classes = match class_of(module, *of) {
                    Some((own, _)) if own != class => vec![class, own],
                    _ => vec![class],
                };
                let mut way: Vec<WalkedChange> = Vec::new();
                if class != StorageClass::Workgroup {
                    let mut declared =
                        Candidates { found: Vec::new(), handed: Vec::new(), last: None, ..*self };
                    raced.iter().for_each(|root| declared.coherent(*root, sites));
                    way.extend(declared.found);
                }
                way.extend(self.handover(*giver, *giver_made, false, &classes));
                way.extend(self.handover(*taker, *taker_made, true, &classes));
                ways.push((rank, way));
            }
        }
        ways.sort_by_key(|(rank, _)| *rank);
        self.handed = ways.into_iter().take(MAX_HANDOVERS).map(|(_, way)| way).collect();
    }

    /// What makes an atomic an acquire, or else a release: semantics of its own where there are such, else a memory barrier beside it.
    fn handover(
        &self,
        site: Site,
        is_made: bool,
        acquires: bool,
        classes: &[StorageClass],
    ) -> Option<WalkedChange> {
        let module = self.module;
        if module.vulkan && !is_made {
            let order = super::order_words(acquires, !acquires);
            let text = format!("give this atomic {order} semantics on {}", super::class_words(classes[0]));
            return self.change(site, text, Make::Ordered(site, acquires, !acquires, classes[0]));
        }
        let code = &module.functions.get(&site.function)?.code;
        let memory = match classes {
            [one] => self.language.memory(*one),
            _ => self.language.all_memory(),
        };
        let here = match (is_made, acquires) {
            (false, _) => "this atomic",
            (true, true) => "this read",
            (true, false) => "this write",
        };
        let side = if acquires { "behind" } else { "before" };
        let at = module.first_word(code.get(site.index + usize::from(acquires))?);
        let make = Make::Fences(vec![at], classes.to_vec());
        self.change(site, format!("put `{memory}` {side} {here}"), make)
    }
}
