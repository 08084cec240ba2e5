//! Variations of an instruction: the same litmus test with another order, scope, strength or storage class in it.
//!
//! The syntax tree of the instruction is changed and printed again, and a variation is returned if the changed test
//! parses. Instructions that are not of the native dialect have no variations.

#![deny(clippy::wildcard_enum_match_arm)]

use std::ops::Range;

use litmus::{
    Access, AccessKind, ControlBarrier, Dialect, Instruction, InstructionKind, LocationId, MemoryAccess,
    Order, Scope, Semantics, SplitBarrier, StorageClass, StorageClassSet, Test, ThreadId,
};

/// The part of an instruction in which a variation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariedPart {
    Order,
    Scope,
    /// Plain, non-private, available or visible, or atomic.
    Strength,
    /// The storage classes that its semantics order.
    OrderedClasses,
    /// The storage class of the accessed location, in all its accesses.
    StorageClass,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// The part that differs.
    pub part: VariedPart,
    /// The text of the instruction after it.
    pub instruction: String,
    /// Byte ranges and their replacements, in text order and disjoint.
    pub edits: Vec<(Range<usize>, String)>,
}

/// Returns the variations of the instruction at a byte offset that parse, by part.
pub fn variations(text: &str, offset: usize) -> Vec<Variation> {
    let Ok(test) = litmus::parse(text, "") else { return Vec::new() };
    if test.dialect != Dialect::Vulkan {
        return Vec::new();
    }
    let Some((thread, index)) = instruction_at(&test, offset) else { return Vec::new() };
    let kind = &test.threads[usize::from(thread.0)].instructions[index].kind;
    let mut found: Vec<Variation> = Vec::new();
    for (part, varied) in single_variations(kind) {
        let edit = (instruction_range(&test, thread, index), varied.to_text(&test, thread));
        found.push(Variation { part, instruction: edit.1.clone(), edits: vec![edit] });
    }
    if let InstructionKind::Access(access) = kind {
        let others = StorageClass::ALL.into_iter().filter(|class| *class != access.place.class);
        found.extend(others.map(|class| change_class(&test, thread, index, access.place.location, class)));
    }
    let original_text = kind.to_text(&test, thread);
    let is_valid = |variation: &Variation| {
        apply_edits(text, variation).is_some_and(|changed| litmus::parse(&changed, "").is_ok())
    };
    found.retain(|variation| variation.instruction != original_text && is_valid(variation));
    found.sort_by_key(|variation| variation.part);
    found.dedup();
    found
}

/// Returns the instruction whose text contains a byte offset or ends at it. Calls of the API become several
/// instructions with one text, which is not printed back; they have no variations.
fn instruction_at(test: &Test, offset: usize) -> Option<(ThreadId, usize)> {
    (0..).zip(&test.threads).find_map(|(thread, code)| {
        let contains = |instruction: &Instruction| {
            let start = instruction.span.offset as usize;
            (start..=start + instruction.span.length as usize).contains(&offset)
        };
        let at = code.instructions.iter().position(contains)?;
        let is_only = code.instructions.iter().filter(|instruction| contains(instruction)).count() == 1;
        is_only.then_some((ThreadId(thread), at))
    })
}

fn instruction_range(test: &Test, thread: ThreadId, index: usize) -> Range<usize> {
    let span = test.threads[usize::from(thread.0)].instructions[index].span;
    span.offset as usize..(span.offset + span.length) as usize
}

/// Returns the text after the edits.
fn apply_edits(text: &str, variation: &Variation) -> Option<String> {
    let (mut changed, mut end) = (String::new(), 0);
    for (range, new) in &variation.edits {
        changed += text.get(end..range.start)?;
        changed += new;
        end = range.end;
    }
    Some(changed + text.get(end..)?)
}

/// Returns the test with all accesses of a location in another storage class.
fn change_class(
    test: &Test,
    thread: ThreadId,
    index: usize,
    location: LocationId,
    class: StorageClass,
) -> Variation {
    let mut varied =
        Variation { part: VariedPart::StorageClass, instruction: String::new(), edits: Vec::new() };
    for (other, code) in (0..).zip(&test.threads) {
        for (at, instruction) in code.instructions.iter().enumerate() {
            let InstructionKind::Access(access) = &instruction.kind else { continue };
            if access.place.location != location {
                continue;
            }
            let mut access = *access;
            access.place.class = class;
            let text = InstructionKind::Access(access).to_text(test, ThreadId(other));
            if (ThreadId(other), at) == (thread, index) {
                varied.instruction.clone_from(&text);
            }
            varied.edits.push((instruction_range(test, ThreadId(other), at), text));
        }
    }
    varied.edits.sort_by_key(|(range, _)| range.start);
    varied
}

/// Returns the changes of one instruction; some are not valid.
fn single_variations(kind: &InstructionKind) -> Vec<(VariedPart, InstructionKind)> {
    let mut found = Vec::new();
    match kind {
        InstructionKind::Access(access) => {
            for (part, strength) in strength_variations(access) {
                found.push((part, InstructionKind::Access(MemoryAccess { strength, ..*access })));
            }
        }
        InstructionKind::Fence { scope, semantics } => {
            let fence = |(part, scope, semantics)| (part, InstructionKind::Fence { scope, semantics });
            let orders = |order: &Order| *order != Order::Relaxed;
            found.extend(
                synchronization_variations(*scope, *semantics, StorageClass::Buffer, orders).map(fence),
            );
        }
        InstructionKind::ControlBarrier(barrier) => {
            for (part, memory_scope, semantics) in barrier_variations(barrier.memory_scope, barrier.semantics)
            {
                let barrier = ControlBarrier { memory_scope, semantics, ..barrier.clone() };
                found.push((part, InstructionKind::ControlBarrier(barrier)));
            }
        }
        InstructionKind::SplitBarrier(barrier) => {
            for (part, memory_scope, semantics) in barrier_variations(barrier.memory_scope, barrier.semantics)
            {
                let barrier = SplitBarrier { memory_scope, semantics, ..barrier.clone() };
                found.push((part, InstructionKind::SplitBarrier(barrier)));
            }
        }
        InstructionKind::Subgroup(_)
        | InstructionKind::System(_)
        | InstructionKind::ShaderCall(_)
        | InstructionKind::Interlock(_)
        | InstructionKind::Compute(_)
        | InstructionKind::Flow(_) => {}
    }
    found
}

/// Returns other scopes and semantics of a barrier, which has none if it is relaxed.
fn barrier_variations(
    scope: Scope,
    semantics: Option<Semantics>,
) -> impl Iterator<Item = (VariedPart, Scope, Option<Semantics>)> {
    let semantics = semantics.unwrap_or(Semantics::RELAXED);
    let varied = synchronization_variations(scope, semantics, StorageClass::Buffer, |_| true);
    varied.map(|(part, scope, semantics)| {
        (part, scope, (semantics.order != Order::Relaxed).then_some(semantics))
    })
}

/// Returns other strengths of an access.
fn strength_variations(access: &MemoryAccess) -> Vec<(VariedPart, Access)> {
    let scope = access.strength.scope().unwrap_or(Scope::Device);
    let class = access.place.class;
    let mut found = Vec::new();
    if let Access::Atomic { scope, semantics } = access.strength {
        let orders = |order: &Order| match access.kind {
            AccessKind::Load(_) | AccessKind::Await { .. } => !order.releases(),
            AccessKind::Store(_) => !order.acquires(),
            AccessKind::Rmw { .. } => true,
        };
        let atomic = |(part, scope, semantics)| (part, Access::Atomic { scope, semantics });
        found.extend(synchronization_variations(scope, semantics, class, orders).map(atomic));
    }
    if let Access::Coherent { .. } = access.strength {
        found.extend(Scope::ALL.map(|scope| (VariedPart::Scope, Access::Coherent { scope })));
    }
    if let AccessKind::Load(_) | AccessKind::Store(_) = access.kind {
        let semantics = Semantics::RELAXED;
        let all = [
            Access::Private,
            Access::NonPrivate,
            Access::Coherent { scope },
            Access::Atomic { scope, semantics },
        ];
        let is_other =
            |strength: &Access| std::mem::discriminant(strength) != std::mem::discriminant(&access.strength);
        found.extend(all.into_iter().filter(is_other).map(|strength| (VariedPart::Strength, strength)));
    }
    found
}

/// Returns other orders, scopes and ordered storage classes. An instruction that was relaxed orders `class`.
fn synchronization_variations(
    scope: Scope,
    semantics: Semantics,
    class: StorageClass,
    has_order: impl Fn(&Order) -> bool,
) -> impl Iterator<Item = (VariedPart, Scope, Semantics)> {
    let orders = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcquireRelease];
    let orders: Vec<_> =
        orders.into_iter().filter(has_order).map(|order| with_order(semantics, order, class)).collect();
    let orders = orders.into_iter().map(move |semantics| (VariedPart::Order, scope, semantics));
    let scopes = Scope::ALL.into_iter().map(move |scope| (VariedPart::Scope, scope, semantics));
    let is_ordered = semantics.order != Order::Relaxed;
    let classes = StorageClass::ALL.into_iter().filter(move |_| is_ordered).map(move |class| {
        let classes = StorageClassSet(semantics.classes.0 ^ StorageClassSet::EMPTY.with(class).0);
        (VariedPart::OrderedClasses, scope, Semantics { classes, ..semantics })
    });
    orders.chain(scopes).chain(classes)
}

/// Returns semantics with another order.
fn with_order(semantics: Semantics, order: Order, class: StorageClass) -> Semantics {
    if order == Order::Relaxed {
        return Semantics::RELAXED;
    }
    let classes = match semantics.classes {
        StorageClassSet::EMPTY => StorageClassSet::EMPTY.with(class),
        classes => classes,
    };
    Semantics {
        order,
        classes,
        make_available: semantics.make_available && order.releases(),
        make_visible: semantics.make_visible && order.acquires(),
        sequential: false,
        ..semantics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "VULKAN MP\n{ x = 0; f = 0; }\n\
        P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
        st.sc0 x, 1 | ld.atom.acq.dv.sc0.semsc0 r0, f ;\n\
        membar.rel.dv.semsc0 | ld.sc0 r1, x ;\n\
        st.atom.dv.sc0 f, 1 | ;\n\
        exists (P1:r0 == 1 /\\ P1:r1 == 0)\n";

    /// Returns the instructions of a part's variations at the start of a word.
    fn variation_texts(word: &str, part: VariedPart) -> Vec<String> {
        let found = variations(TEST, TEST.find(word).unwrap());
        let of_part = found.into_iter().filter(|variation| variation.part == part);
        of_part.map(|variation| variation.instruction).collect()
    }

    #[test]
    fn parts_of_instructions_vary() {
        assert_eq!(variation_texts("ld.atom", VariedPart::Order), ["ld.atom.dv.sc0 r0, f"]);
        let scopes = variation_texts("ld.atom", VariedPart::Scope);
        assert!(scopes.contains(&"ld.atom.acq.wg.sc0.semsc0 r0, f".to_owned()), "{scopes:?}");
        assert!(!scopes.contains(&"ld.atom.acq.dv.sc0.semsc0 r0, f".to_owned()), "{scopes:?}");
        let classes = variation_texts("ld.atom", VariedPart::OrderedClasses);
        assert!(classes.contains(&"ld.atom.acq.dv.sc0.semsc0.semsc1 r0, f".to_owned()), "{classes:?}");
        assert_eq!(variation_texts("st.atom", VariedPart::Order), ["st.atom.rel.dv.sc0.semsc0 f, 1"]);
        assert_eq!(
            variation_texts("membar", VariedPart::Order),
            ["membar.acq.dv.semsc0", "membar.acq_rel.dv.semsc0"]
        );
        let strengths = ["st.nonpriv.sc0 x, 1", "st.av.dv.sc0 x, 1", "st.atom.dv.sc0 x, 1"];
        assert_eq!(variation_texts("st.sc0", VariedPart::Strength), strengths);
        assert_eq!(variations(TEST, TEST.find("exists").unwrap()), []);
        assert_eq!(variations("VULKAN A\n{", 3), []);
    }

    #[test]
    fn a_location_changes_its_class_in_all_accesses() {
        let found = variations(TEST, TEST.find("st.sc0").unwrap());
        let moved = found.iter().find(|variation| variation.instruction == "st.sc1 x, 1").unwrap();
        assert_eq!(moved.part, VariedPart::StorageClass);
        assert_eq!(
            moved.edits.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["st.sc1 x, 1", "ld.sc1 r1, x"]
        );
    }

    #[test]
    fn variations_of_the_corpus_match_their_descriptions() {
        let mut count = 0;
        for test in litmus::corpus::tests().into_iter().step_by(25) {
            let parsed = litmus::parse(test.text, "").unwrap();
            for instruction in parsed.threads.iter().flat_map(|thread| &thread.instructions) {
                let at = instruction.span.offset as usize;
                for variation in variations(test.text, at) {
                    let changed = apply_edits(test.text, &variation).unwrap();
                    let changed = litmus::parse(&changed, "").unwrap();
                    let (thread, index) = instruction_at(&parsed, at).unwrap();
                    let kind = &changed.threads[usize::from(thread.0)].instructions[index].kind;
                    assert_eq!(kind.to_text(&changed, thread), variation.instruction, "{}", test.id);
                    count += 1;
                }
            }
        }
        assert!(count > 100, "{count}");
    }
}
