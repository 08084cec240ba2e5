//! Where workgroups run: the placements that an exploration enumerates.

use crate::family::Generation;
use crate::question::{Placement, Workgroup};

/// Workgroups up to which every placement is enumerated.
const ALL_UP_TO: usize = 4;

/// Every way to put workgroups on compute units and those into shader arrays, up to renaming; where a workgroup may be
/// spread, once with its waves on one compute unit and once by turns on two.
///
/// With more than four workgroups: all apart, in one array or in several, all together, and each pair together.
pub(crate) fn placements(generation: Generation, workgroups: &[Workgroup]) -> Vec<Placement> {
    let count = workgroups.len();
    let arrays = generation >= Generation::Gfx10;
    let mut seats: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if count <= ALL_UP_TO {
        for units in partitions(count) {
            for array_of in partitions(count) {
                let refined = (0..count)
                    .all(|a| (0..count).all(|b| units[a] != units[b] || array_of[a] == array_of[b]));
                let one = array_of.iter().all(|array| *array == 0);
                if refined && (arrays || one) {
                    seats.push((units.clone(), array_of));
                }
            }
        }
    } else {
        let apart: Vec<u8> = (0..count).map(|number| number.min(250) as u8).collect();
        let together = vec![0; count];
        seats.push((apart.clone(), together.clone()));
        seats.push((together.clone(), together));
        if arrays {
            seats.push((apart.clone(), apart.clone()));
        }
        for first in 0..count {
            for second in first + 1..count {
                let mut units = apart.clone();
                units[second] = units[first];
                let array_of = if arrays { units.clone() } else { vec![0; count] };
                seats.push((units, array_of));
            }
        }
    }
    let spread =
        generation.spreads_workgroups() && workgroups.iter().any(|workgroup| workgroup.waves.len() > 1);
    let mut made = Vec::new();
    for (units, array_of) in seats {
        for apart in if spread { &[false, true][..] } else { &[false][..] } {
            made.push(seat(workgroups, &units, &array_of, *apart));
        }
    }
    made
}

/// Two compute units for each seat: waves of a spread workgroup take them by turns.
fn seat(workgroups: &[Workgroup], units: &[u8], array_of: &[u8], spread: bool) -> Placement {
    let mut placement = Placement::default();
    let seats = units.iter().copied().max().map_or(0, |most| usize::from(most) + 1);
    placement.arrays = vec![0; 2 * seats];
    for (number, workgroup) in workgroups.iter().enumerate() {
        let unit = usize::from(units[number]);
        for half in 0..2 {
            placement.arrays[2 * unit + half] = array_of[number];
        }
        let unit_of = |wave: usize| (2 * unit + if spread { wave % 2 } else { 0 }) as u8;
        placement.units.push((0..workgroup.waves.len()).map(unit_of).collect());
    }
    placement
}

/// Partitions of so many things, each as the number of the block of every thing, blocks in the order of their first.
fn partitions(count: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|partial: Vec<u8>| {
                let blocks = partial.iter().copied().max().map_or(0, |most| most + 1);
                (0..=blocks).map(move |block| {
                    let mut longer = partial.clone();
                    longer.push(block);
                    longer
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are() {
        assert_eq!(partitions(4).len(), 15);
        let workgroup = Workgroup { kernel: 0, id: 0, wave_size: 64, waves: vec![vec![0]] };
        let several = |count| vec![workgroup.clone(); count];
        assert_eq!(placements(Generation::Gfx9, &several(3)).len(), 5);
        assert_eq!(placements(Generation::Gfx10, &several(2)).len(), 3);
        assert_eq!(placements(Generation::Gfx10, &several(3)).len(), 12);
        assert_eq!(placements(Generation::Gfx10, &several(6)).len(), 18);
        let wide = Workgroup { waves: vec![vec![0], vec![0]], ..workgroup };
        assert_eq!(placements(Generation::Gfx11, std::slice::from_ref(&wide)).len(), 2);
        assert_eq!(placements(Generation::Gfx9, &[wide]).len(), 1);
    }
}
