//! Cells: the disjoint byte ranges of a storage that the accesses of an execution distinguish. A storage
//! whose accesses all have its own size is one cell.
//!
//! Reads-from, modification order and location order are defined per cell, so that a read may combine bytes
//! of several writes (mixed-size accesses). An access of several cells becomes several events, related by the
//! base relation `part`. Each component of a vector is a separate cell: an access of several components is
//! several operations.

use std::ops::Deref;

use litmus::{LocationId, MemoryPlace, ScalarType, Test};

/// A byte range of a storage: the bytes that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The storage, by its name.
    pub(crate) storage: LocationId,
    /// First byte, from the start of the storage.
    pub(crate) offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// True if the range is the whole storage, or one whole component of a vector.
    pub(crate) whole: bool,
}

impl Extent {
    /// Returns the bytes that an access through a name touches; `scalar` is the access type if it differs
    /// from the name's type.
    pub fn new(test: &Test, name: LocationId, offset: u32, scalar: Option<ScalarType>) -> Extent {
        let storage = test.storage_of(name);
        let bytes = scalar.unwrap_or(test.location(name).scalar_type()).bytes();
        let component = test.location(storage).scalar_type().bytes();
        let whole = bytes == component && offset.is_multiple_of(component);
        Extent { storage, offset, bytes, whole }
    }

    /// Returns the bytes that one scalar of an access touches.
    pub(crate) fn of(test: &Test, place: &MemoryPlace) -> Extent {
        Extent::new(test, place.location, place.offset, place.scalar)
    }

    /// All that a name names.
    pub(crate) fn of_name(test: &Test, name: LocationId) -> Extent {
        let storage = test.storage_of(name);
        let bytes = test.location(name).bytes();
        Extent { storage, offset: 0, bytes, whole: bytes == test.location(storage).bytes() }
    }

    /// Returns the bytes that an observable names.
    pub(crate) fn of_component(test: &Test, name: LocationId, component: u8) -> Extent {
        let scalar = test.location(name).scalar_type();
        Extent::new(test, name, u32::from(component) * scalar.bytes(), None)
    }

    /// Returns the part of the range that is in a piece.
    pub(crate) fn part(self, test: &Test, piece: Piece) -> Extent {
        let component = test.location(self.storage).scalar_type().bytes();
        let offset = self.offset + piece.before;
        let whole = piece.bytes == component && offset.is_multiple_of(component);
        Extent { storage: self.storage, offset, bytes: piece.bytes, whole }
    }

    fn end(self) -> u32 {
        self.offset + self.bytes
    }
}

/// The part of an access in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The cell: the storage itself for its first or only cell, and ids past the locations of the test for
    /// the others.
    pub cell: LocationId,
    /// Number of bytes of the access that precede the cell.
    pub before: u32,
    /// Bytes of the cell.
    pub bytes: u32,
    /// True if the access is contained in this cell.
    pub alone: bool,
}

/// The pieces of an access; most accesses have one.
#[derive(Clone, Debug)]
pub enum Pieces {
    One(Piece),
    Several(Vec<Piece>),
}

impl Deref for Pieces {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        match self {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Several(pieces) => pieces,
        }
    }
}

/// The storages with more than one cell.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    split: Vec<Split>,
}

#[derive(Clone, Debug)]
struct Split {
    storage: LocationId,
    /// The start of each cell, and the end of the last one.
    bounds: Vec<u32>,
    /// The id of the second cell.
    second: u16,
}

impl Cells {
    /// Splits storages at the bounds of these accesses, observables included.
    ///
    /// With `bytes`, each byte of a storage whose accesses differ in size is a cell. This must not change any
    /// result.
    pub fn new(test: &Test, accesses: impl Iterator<Item = Extent> + Clone, bytes: bool) -> Cells {
        let mut cells = Cells::default();
        let is_split =
            |extent: &Extent| !extent.whole || extent.bytes != test.location(extent.storage).bytes();
        if !accesses.clone().any(|extent| is_split(&extent)) {
            return cells;
        }
        let mut next = test.locations.len() as u16;
        for extent in accesses.clone().filter(is_split) {
            if cells.split.iter().any(|split| split.storage == extent.storage) {
                continue;
            }
            let size = test.location(extent.storage).bytes();
            let parts = accesses.clone().any(|other| other.storage == extent.storage && !other.whole);
            let mut bounds: Vec<u32> = if bytes && parts { (0..=size).collect() } else { vec![0, size] };
            // Cuts where any access starts or ends, so that each access consists of whole cells.
            for other in accesses.clone().filter(|other| other.storage == extent.storage) {
                bounds.extend([other.offset, other.end()]);
            }
            bounds.sort_unstable();
            bounds.dedup();
            // The first of the `bounds.len() - 1` cells keeps the id of the storage; the others get
            // new ids in a row.
            let second = next;
            next += bounds.len().saturating_sub(2) as u16;
            cells.split.push(Split { storage: extent.storage, bounds, second });
        }
        cells
    }

    /// Returns the pieces of an access, from its first byte on.
    pub fn pieces(&self, extent: Extent) -> Pieces {
        let Some(split) = self.split.iter().find(|split| split.storage == extent.storage) else {
            let whole = Piece { cell: extent.storage, before: 0, bytes: extent.bytes, alone: true };
            return Pieces::One(whole);
        };
        let inside = split.bounds.windows(2).enumerate().filter_map(|(index, bounds)| {
            let [start, end] = *bounds else { return None };
            // Each access is cut at its bounds, so each cell is either inside or outside of it.
            (extent.offset <= start && end <= extent.end()).then_some((index, start, end))
        });
        let cell = |index: usize| match index {
            0 => split.storage,
            index => LocationId(split.second + index as u16 - 1),
        };
        let pieces = inside.map(|(index, start, end)| Piece {
            cell: cell(index),
            before: start - extent.offset,
            bytes: end - start,
            alone: end - start == extent.bytes,
        });
        Pieces::Several(pieces.collect())
    }
}
