//! The slots of values: where a frame or the module stores the value of an id.

use std::rc::Rc;

use entry_point::malformed;

use super::step::Step;
use super::value::{ConcreteValue, Taint};

/// Tag of slots that hold module-level values.
pub(super) const GLOBAL_TAG: u32 = 1 << 31;
/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Upper bound on the components of a vector that have separate slots.
pub(super) const MAX_SPLIT_COMPONENTS: usize = 4;

/// The slots of an id's value. An id that only rearranges other values aliases their slots and has none
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    pub slots: [u32; MAX_SPLIT_COMPONENTS],
    /// Number of components in separate slots; 0 for a value in one slot.
    pub count: u8,
}

impl Slots {
    /// An id without a value.
    pub const EMPTY: Slots = Slots { slots: [NO_SLOT; MAX_SPLIT_COMPONENTS], count: 0 };

    /// Returns one slot, or `count` consecutive slots.
    pub fn consecutive(first: u32, count: u8) -> Slots {
        Slots { slots: [0, 1, 2, 3].map(|index| first.wrapping_add(index)), count }
    }

    /// Returns all slots.
    pub fn as_slice(&self) -> &[u32] {
        self.slots.get(..usize::from(self.count.max(1))).unwrap_or_default()
    }

    /// Returns the slot of a value in one slot.
    pub fn single_slot(&self) -> Option<u32> {
        (self.count == 0 && self.slots[0] != NO_SLOT).then_some(self.slots[0])
    }

    /// Returns the slot of a component; a value in one slot has the same for all.
    pub fn component_slot(&self, index: usize) -> Option<u32> {
        let all = self.as_slice();
        all.get(if self.count == 0 { 0 } else { index }).copied().filter(|slot| *slot != NO_SLOT)
    }

    /// Combines component slots to a vector.
    pub fn from_components(all: &[u32]) -> Option<Slots> {
        let mut at = [NO_SLOT; MAX_SPLIT_COMPONENTS];
        at.get_mut(..all.len())?.copy_from_slice(all);
        (all.len() > 1 && !all.contains(&NO_SLOT)).then_some(Slots { slots: at, count: all.len() as u8 })
    }

    pub fn has_value(&self) -> bool {
        self.slots[0] != NO_SLOT
    }
}

/// Returns the value in a slot.
#[inline]
pub(super) fn read_slot<'v>(
    values: &'v [ConcreteValue],
    globals: &'v [ConcreteValue],
    slot: u32,
) -> Option<&'v ConcreteValue> {
    match slot & GLOBAL_TAG {
        0 => values.get(slot as usize),
        _ => globals.get((slot & !GLOBAL_TAG) as usize),
    }
}

/// Gathers the value of an id from its slots.
pub(super) fn gather_slots(
    values: &[ConcreteValue],
    globals: &[ConcreteValue],
    slots: Slots,
) -> Option<ConcreteValue> {
    if slots.count == 0 {
        return read_slot(values, globals, slots.single_slot()?).cloned();
    }
    let parts = slots.as_slice().iter().map(|slot| read_slot(values, globals, *slot).cloned());
    let parts = parts.collect::<Option<Rc<[ConcreteValue]>>>()?;
    // A vector of values without bits is itself such a value.
    let nothing = parts.iter().try_fold(0, |all: Taint, part| match part {
        ConcreteValue::NoBits(taint) => Some(all | taint),
        _ => None,
    });
    Some(nothing.map_or(ConcreteValue::Composite(parts), ConcreteValue::NoBits))
}

/// Stores a value into the slots of an id.
pub(super) fn scatter_value(values: &mut [ConcreteValue], to: Slots, value: ConcreteValue) -> Step<()> {
    let parts = match &value {
        ConcreteValue::Composite(parts) if to.count > 0 => {
            if parts.len() != usize::from(to.count) {
                return Err(malformed("a vector of a different length").into());
            }
            &parts[..]
        }
        _ => &[],
    };
    for (index, slot) in to.as_slice().iter().enumerate() {
        if let Some(place) = values.get_mut(*slot as usize) {
            *place = parts.get(index).unwrap_or(&value).clone();
        }
    }
    Ok(())
}

/// Copies slots between two frames, for arguments and results.
pub(super) fn copy_slots(
    globals: &[ConcreteValue],
    values: &[ConcreteValue],
    from: Slots,
    into: &mut [ConcreteValue],
    to: Slots,
) -> Option<()> {
    if from.count != to.count {
        return None;
    }
    for (from, to) in from.as_slice().iter().zip(to.as_slice()) {
        let value = read_slot(values, globals, *from)?.clone();
        if let Some(place) = into.get_mut(*to as usize) {
            *place = value;
        }
    }
    Some(())
}
