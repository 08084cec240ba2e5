//! Division of memory into cells.

use litmus::{LocationId, ScalarType, Test};
use model::internals::{AccessPiece, CellPartition, Extent};

fn test() -> Test {
    let text =
        "VULKAN cells\n{ u64 x = 0; u32 y = 0; }\nP0@sg 0, wg 0, qf 0 ;\nld.sc0 r0, x ;\nld.sc0 r0, y ;";
    litmus::parse(text, "cells").unwrap()
}

fn extents(test: &Test, list: &[(u16, u32, Option<ScalarType>)]) -> Vec<Extent> {
    list.iter().map(|(name, offset, scalar)| Extent::new(test, LocationId(*name), *offset, *scalar)).collect()
}

#[test]
fn accesses_of_one_size_are_one_cell() {
    let test = test();
    let accesses = extents(&test, &[(0, 0, None), (1, 0, None), (0, 0, Some(ScalarType::I64))]);
    let cells = CellPartition::new(&test, accesses.iter().copied(), true);
    let piece = AccessPiece { cell: LocationId(0), access_offset: 0, bytes: 8, is_whole_access: true };
    assert_eq!(*cells.split_access(accesses[0]), [piece]);
}

#[test]
fn bounds_of_accesses_are_bounds_of_cells() {
    let test = test();
    let accesses = extents(
        &test,
        &[(0, 0, None), (0, 4, Some(ScalarType::U16)), (1, 0, None), (1, 3, Some(ScalarType::U8))],
    );
    let cells = CellPartition::new(&test, accesses.iter().copied(), false);
    let of = |index: usize| -> Vec<(u16, u32, u32)> {
        cells.split_access(accesses[index]).iter().map(|p| (p.cell.0, p.access_offset, p.bytes)).collect()
    };
    assert_eq!(of(0), [(0, 0, 4), (2, 4, 2), (3, 6, 2)]);
    assert_eq!(of(1), [(2, 0, 2)]);
    assert_eq!(of(2), [(1, 0, 3), (4, 3, 1)]);
    let fine = CellPartition::new(&test, accesses.iter().copied(), true);
    assert_eq!(fine.split_access(accesses[0]).len(), 8);
    assert_eq!(fine.split_access(accesses[1]).len(), 2);
}
