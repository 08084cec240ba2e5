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
    pub(crate) is_whole: bool,
}

impl Extent {
    /// Returns the bytes that an access through a name touches; `scalar` is the access type if it differs
    /// from the name's type.
    pub fn new(test: &Test, name: LocationId, offset: u32, scalar: Option<ScalarType>) -> Extent {
        let storage = test.storage_of(name);
        let bytes = scalar.unwrap_or(test.location(name).scalar_type()).bytes();
        let component = test.location(storage).scalar_type().bytes();
        let is_whole = bytes == component && offset.is_multiple_of(component);
        Extent { storage, offset, bytes, is_whole }
    }

    /// Returns the bytes that one scalar of an access touches.
    pub(crate) fn from_place(test: &Test, place: &MemoryPlace) -> Extent {
        Extent::new(test, place.location, place.offset, place.scalar)
    }

    /// Returns the range of all bytes of a name.
    pub(crate) fn from_name(test: &Test, name: LocationId) -> Extent {
        let storage = test.storage_of(name);
        let bytes = test.location(name).bytes();
        Extent { storage, offset: 0, bytes, is_whole: bytes == test.location(storage).bytes() }
    }

    /// Returns the bytes that an observable names.
    pub(crate) fn from_component(test: &Test, name: LocationId, component: u8) -> Extent {
        let scalar = test.location(name).scalar_type();
        Extent::new(test, name, u32::from(component) * scalar.bytes(), None)
    }

    /// Returns the part of the range that is in a piece.
    pub(crate) fn piece_extent(self, test: &Test, piece: AccessPiece) -> Extent {
        let component = test.location(self.storage).scalar_type().bytes();
        let offset = self.offset + piece.access_offset;
        let is_whole = piece.bytes == component && offset.is_multiple_of(component);
        Extent { storage: self.storage, offset, bytes: piece.bytes, is_whole }
    }

    fn end(self) -> u32 {
        self.offset + self.bytes
    }
}

/// The part of an access in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPiece {
    /// The cell: the storage itself for its first or only cell, and ids past the locations of the test for
    /// the others.
    pub cell: LocationId,
    /// Number of bytes of the access that precede the cell.
    pub access_offset: u32,
    /// Bytes of the cell.
    pub bytes: u32,
    /// True if the access is contained in this cell.
    pub is_whole_access: bool,
}

/// The pieces of an access, without an allocation if there is one.
#[derive(Clone, Debug)]
pub enum AccessPieces {
    One(AccessPiece),
    Several(Vec<AccessPiece>),
}

impl Deref for AccessPieces {
    type Target = [AccessPiece];

    fn deref(&self) -> &[AccessPiece] {
        match self {
            AccessPieces::One(piece) => std::slice::from_ref(piece),
            AccessPieces::Several(pieces) => pieces,
        }
    }
}

/// The storages with more than one cell.
#[derive(Clone, Debug, Default)]
pub struct CellPartition {
    split_storages: Vec<SplitStorage>,
}

#[derive(Clone, Debug)]
struct SplitStorage {
    storage: LocationId,
    /// The start of each cell, and the end of the last one.
    cell_bounds: Vec<u32>,
    /// The id of the second cell.
    second_cell: u16,
}

impl CellPartition {
    /// Splits storages at the bounds of these accesses, observables included.
    ///
    /// With `bytes`, each byte of a storage whose accesses differ in size is a cell. This must not change any
    /// result.
    pub fn new(test: &Test, accesses: impl Iterator<Item = Extent> + Clone, bytes: bool) -> CellPartition {
        let mut cells = CellPartition::default();
        let is_split =
            |extent: &Extent| !extent.is_whole || extent.bytes != test.location(extent.storage).bytes();
        if !accesses.clone().any(|extent| is_split(&extent)) {
            return cells;
        }
        let mut next = test.locations.len() as u16;
        for extent in accesses.clone().filter(is_split) {
            if cells.split_storages.iter().any(|split| split.storage == extent.storage) {
                continue;
            }
            let size = test.location(extent.storage).bytes();
            let parts = accesses.clone().any(|other| other.storage == extent.storage && !other.is_whole);
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
            cells.split_storages.push(SplitStorage {
                storage: extent.storage,
                cell_bounds: bounds,
                second_cell: second,
            });
        }
        cells
    }

    /// Returns the pieces of an access, from its first byte on.
    pub fn split_access(&self, extent: Extent) -> AccessPieces {
        let Some(split) = self.split_storages.iter().find(|split| split.storage == extent.storage) else {
            let whole = AccessPiece {
                cell: extent.storage,
                access_offset: 0,
                bytes: extent.bytes,
                is_whole_access: true,
            };
            return AccessPieces::One(whole);
        };
        let inside = split.cell_bounds.windows(2).enumerate().filter_map(|(index, bounds)| {
            let [start, end] = *bounds else { return None };
            // Each access is cut at its bounds, so each cell is either inside or outside of it.
            (extent.offset <= start && end <= extent.end()).then_some((index, start, end))
        });
        let cell = |index: usize| match index {
            0 => split.storage,
            index => LocationId(split.second_cell + index as u16 - 1),
        };
        let pieces = inside.map(|(index, start, end)| AccessPiece {
            cell: cell(index),
            access_offset: start - extent.offset,
            bytes: end - start,
            is_whole_access: end - start == extent.bytes,
        });
        AccessPieces::Several(pieces.collect())
    }
}
