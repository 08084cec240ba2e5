//! Facts about the base sets and relations of an event structure: which are empty, which are equal.
//!
//! Event structures with the same facts share a specialized plan.

use litmus::{LocationId, Scope};

use crate::cat::KnownBase;
use crate::skeleton::{Owner, Skeleton, Tags, tag_of};

/// The facts of an event structure; equal facts share one specialized plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StructureFacts {
    /// Tags that some event has.
    tags: u64,
    /// Storage classes of accesses, as bits.
    storage_classes: u8,
    /// Bit m: some event has the storage-class semantics m.
    semantics: u16,
    relations: u16,
}

impl StructureFacts {
    const SYSTEM_SYNC: u16 = 1;
    const MEETINGS: u16 = 1 << 1;
    const ADDRESS: u16 = 1 << 2;
    const CONTROL: u16 = 1 << 3;
    const DATA: u16 = 1 << 4;
    /// Some storage has two names, or a part of memory has two.
    const ALIASES: u16 = 1 << 5;
    /// Some subgroups share a workgroup.
    const SUBGROUPS: u16 = 1 << 6;
    /// Some workgroups share a queue family.
    const WORKGROUPS: u16 = 1 << 7;

    pub(crate) fn from_skeleton(skeleton: &Skeleton) -> StructureFacts {
        let mut facts = StructureFacts { tags: 0, storage_classes: 0, semantics: 0, relations: 0 };
        let mut note = |fact: u16, holds: bool| facts.relations |= if holds { fact } else { 0 };
        note(StructureFacts::SYSTEM_SYNC, !skeleton.system_sync.is_empty());
        note(StructureFacts::MEETINGS, !skeleton.barrier_sync.is_empty());
        note(StructureFacts::ADDRESS, !skeleton.address_dependencies.is_empty());
        note(StructureFacts::CONTROL, !skeleton.control_dependencies.is_empty());
        note(StructureFacts::DATA, !skeleton.data_dependencies.is_empty());
        let mut names: Vec<(LocationId, LocationId)> = Vec::new();
        let mut places = Vec::new();
        let mut last = Owner::Initial;
        for event in &skeleton.events {
            facts.tags |= event.tags.bits();
            facts.storage_classes |= event.tags.storage_classes;
            // One bit for each set of storage classes that occurs.
            facts.semantics |= 1u16.checked_shl(u32::from(event.tags.semantics)).unwrap_or(0);
            if let (Some(storage), Some(reference)) = (event.storage, event.reference) {
                // Each storage with its first name: any other pair is an alias.
                match names.iter().find(|known| known.0 == storage || known.1 == reference) {
                    Some(known) if *known != (storage, reference) => {
                        facts.relations |= StructureFacts::ALIASES
                    }
                    Some(_) => {}
                    None => names.push((storage, reference)),
                }
            }
            // The events of a thread are contiguous, so this records the place of each thread once.
            if event.owner != last
                && let Some(place) = event.place
            {
                places.push(place);
                last = event.owner;
            }
        }
        for (index, left) in places.iter().enumerate() {
            for right in &places[..index] {
                match left.common_scope(*right) {
                    Scope::Workgroup => facts.relations |= StructureFacts::SUBGROUPS,
                    Scope::QueueFamily => facts.relations |= StructureFacts::WORKGROUPS,
                    Scope::Invocation
                    | Scope::Subgroup
                    | Scope::ShaderCall
                    | Scope::FragmentInterlock
                    | Scope::Device
                    | Scope::CrossDevice => {}
                }
            }
        }
        facts
    }

    /// Returns the known value of a base; `mask` is the argument of an indexed set.
    pub(crate) fn known_base(&self, name: &str, mask: Option<u8>) -> KnownBase<'static> {
        let empty_unless = |holds: bool| if holds { KnownBase::Unknown } else { KnownBase::Empty };
        let relation = |fact: u16| empty_unless(self.relations & fact != 0);
        match (name, mask) {
            ("SC", Some(mask)) => empty_unless(self.storage_classes & mask != 0),
            ("SEM", Some(mask)) => empty_unless(
                (0..16u8).any(|semantics| self.semantics & (1 << semantics) != 0 && semantics & mask == mask),
            ),
            (_, Some(_)) => KnownBase::Unknown,
            ("ssw" | "pkt", _) => relation(StructureFacts::SYSTEM_SYNC),
            ("syncbar", _) => relation(StructureFacts::MEETINGS),
            ("syncsplit" | "round", _) => {
                empty_unless(self.tags & Tags::ARRIVE != 0 && self.tags & Tags::WAIT != 0)
            }
            ("addr", _) => relation(StructureFacts::ADDRESS),
            ("ctrl", _) => relation(StructureFacts::CONTROL),
            ("data", _) => relation(StructureFacts::DATA),
            ("rmw", _) => empty_unless(self.tags & Tags::RMW != 0),
            ("vloc" | "sref", _) if self.relations & StructureFacts::ALIASES == 0 => KnownBase::Alias("loc"),
            ("block", _) if self.relations & StructureFacts::ALIASES == 0 => KnownBase::Empty,
            ("sref", _) => KnownBase::Alias("vloc"),
            ("sqf", _) if self.relations & (StructureFacts::WORKGROUPS | StructureFacts::SUBGROUPS) == 0 => {
                KnownBase::Alias("ssg")
            }
            ("sqf", _) if self.relations & StructureFacts::WORKGROUPS == 0 => KnownBase::Alias("swg"),
            ("swg", _) if self.relations & StructureFacts::SUBGROUPS == 0 => KnownBase::Alias("ssg"),
            _ => match tag_of(name) {
                Some(tag) => empty_unless(self.tags & tag != 0),
                None => KnownBase::Unknown,
            },
        }
    }
}
