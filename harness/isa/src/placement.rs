//! Where workgroups run: the placements that an exploration enumerates.

use crate::family::Generation;
use crate::question::{Placement, Workgroup};

/// Workgroups up to which every placement is enumerated.
const ALL_UP_TO: usize = 4;

/// Which caches hold something that an access can hit and another wave can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matter {
    /// Those of compute units, vector or scalar.
    pub units: bool,
    /// Those of shader arrays.
    pub arrays: bool,
}

/// Every way to put workgroups on compute units and those into shader arrays, up to renaming; where a workgroup may be
/// spread, once with its waves on one compute unit and once by turns on two.
///
/// Where no cache of a compute unit matters, being apart shows all that being together does: waves of one unit share its
/// queues, which only takes orders away. Where none of an array matters, arrays are all the same.
///
/// With more than four workgroups: all apart, in one array or in several, all together, and each pair together.
pub(crate) fn placements(generation: Generation, workgroups: &[Workgroup], matter: Matter) -> Vec<Placement> {
    let count = workgroups.len();
    let apart: Vec<u8> = (0..count).map(|number| number.min(120) as u8).collect();
    let one = vec![0; count];
    let mut seats: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if count <= ALL_UP_TO {
        let all_units = if matter.units { partitions(count) } else { vec![apart] };
        let all_arrays = if matter.arrays { partitions(count) } else { vec![one] };
        for units in all_units {
            for array_of in &all_arrays {
                let pairs = || units.iter().zip(array_of);
                let refined = pairs().all(|(unit, array)| {
                    pairs().all(|(other, other_array)| unit != other || array == other_array)
                });
                if refined {
                    seats.push((units.clone(), array_of.clone()));
                }
            }
        }
    } else {
        seats.push((apart.clone(), one.clone()));
        if matter.arrays {
            seats.push((apart.clone(), apart.clone()));
        }
        if matter.units {
            seats.push((one.clone(), one.clone()));
            for (second, first) in (1..count).flat_map(|second| (0..second).map(move |first| (second, first)))
            {
                let mut units = apart.clone();
                if let Some(unit) = units.get_mut(second) {
                    *unit = first as u8;
                }
                let array_of = if matter.arrays { units.clone() } else { one.clone() };
                seats.push((units, array_of));
            }
        }
    }
    let several = workgroups.iter().any(|workgroup| workgroup.waves.len() > 1);
    let spread: &[bool] = match (generation.spreads_workgroups() && several, matter.units) {
        (false, _) => &[false],
        (true, false) => &[true],
        (true, true) => &[false, true],
    };
    let mut made = Vec::new();
    for (units, array_of) in &seats {
        made.extend(spread.iter().map(|spread| seat(workgroups, units, array_of, *spread)));
    }
    made
}

/// Two compute units for each seat: waves of a spread workgroup take them by turns.
fn seat(workgroups: &[Workgroup], units: &[u8], array_of: &[u8], spread: bool) -> Placement {
    let seats = units.iter().copied().max().map_or(0, |most| usize::from(most) + 1);
    let mut placement = Placement { units: Vec::new(), arrays: vec![0; 2 * seats] };
    for ((workgroup, unit), array) in workgroups.iter().zip(units).zip(array_of) {
        let first = 2 * usize::from(*unit);
        for half in placement.arrays.iter_mut().skip(first).take(2) {
            *half = *array;
        }
        let unit_of = |wave: usize| (first + if spread { wave % 2 } else { 0 }) as u8;
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
        let (all, units, none) = (
            Matter { units: true, arrays: true },
            Matter { units: true, arrays: false },
            Matter { units: false, arrays: false },
        );
        let workgroup = Workgroup { kernel: 0, id: 0, wave_size: 64, waves: vec![vec![0]] };
        let several = |count| vec![workgroup.clone(); count];
        assert_eq!(placements(Generation::Gfx9, &several(3), units).len(), 5);
        assert_eq!(placements(Generation::Gfx10, &several(2), all).len(), 3);
        assert_eq!(placements(Generation::Gfx10, &several(3), all).len(), 12);
        assert_eq!(placements(Generation::Gfx10, &several(3), none).len(), 1);
        assert_eq!(placements(Generation::Gfx10, &several(6), all).len(), 18);
        let wide = Workgroup { waves: vec![vec![0], vec![0]], ..workgroup };
        assert_eq!(placements(Generation::Gfx11, std::slice::from_ref(&wide), all).len(), 2);
        assert_eq!(placements(Generation::Gfx9, &[wide], units).len(), 1);
    }
}
