//! Random texts in the HSA dialect, also used by the tests of the models.

use std::fmt::Write;

use proptest::prelude::*;

/// One random instruction: its kind, and random numbers for its operands.
#[derive(Clone, Debug)]
struct Piece {
    kind: u8,
    second_location: bool,
    order: usize,
    scope: usize,
    value: u8,
    depends: bool,
    addressed: bool,
    guarded: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    let flag = |weight: u32| prop_oneof![3 => Just(false), weight => Just(true)];
    (0u8..12, any::<bool>(), 0usize..4, 0usize..8, 1u8..3, any::<bool>(), flag(1), flag(1)).prop_map(
        |(kind, second_location, order, scope, value, depends, addressed, guarded)| Piece {
            kind,
            second_location,
            order,
            scope,
            value,
            depends,
            addressed,
            guarded,
        },
    )
}

/// Returns a valid text with threads of at most `longest` accesses and fences, in one work-group or several.
pub fn text(threads: std::ops::RangeInclusive<usize>, longest: usize) -> impl Strategy<Value = String> {
    let thread = (0u32..2, 0u32..2, 0u32..2, proptest::collection::vec(piece(), 1..=longest));
    (proptest::collection::vec(thread, threads), any::<bool>(), any::<bool>(), any::<bool>(), 0u8..8)
        .prop_map(|(threads, near, group, asks_location, packets)| {
            // A location of the group segment belongs to one work-group.
            let segment = if near && group { "group" } else { "global" };
            let columns: Vec<Vec<String>> = threads
                .iter()
                .enumerate()
                .map(|(index, (wave, wg, agent, pieces))| {
                    let (wg, agent) = if near { (&0, &0) } else { (wg, agent) };
                    let mut cells = vec![format!("P{index}@wave {wave}, wg {wg}, agent {agent}")];
                    cells.extend(code(pieces, segment));
                    cells
                })
                .collect();
            let mut text = format!("HSA random\n{{ x = 0; {segment} y = 0; }}\n");
            if packets == 0 && columns.len() > 1 {
                text.push_str("{ pkt P0 P1; }\n");
            }
            for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
                let cells: Vec<&str> =
                    columns.iter().map(|cells| cells.get(row).map_or("", String::as_str)).collect();
                let _ = writeln!(text, "{} ;", cells.join(" | "));
            }
            text.push_str(if asks_location { "exists (x = 1 /\\ [y] != 0)" } else { "~exists (0 = 1)" });
            text
        })
}

const SCOPES: [&str; 8] = ["wi", "wave", "wg", "wg", "agent", "agent", "system", "system"];

fn code(pieces: &[Piece], segment_of_y: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut last: Option<String> = None;
    for (index, piece) in pieces.iter().enumerate() {
        let (name, segment) = if piece.second_location { ("y", segment_of_y) } else { ("x", "global") };
        let scope = SCOPES[piece.scope];
        let value = match &last {
            Some(register) if piece.depends => register.clone(),
            _ => piece.value.to_string(),
        };
        let mut address = format!("[{name}]");
        if let Some(register) = &last {
            if piece.guarded {
                cells.push(format!("cmp_ne_b1_u32 $c{index}, {register}, {}", piece.value));
                cells.push(format!("cbr_b1 $c{index}, @after{index}"));
            }
            if piece.addressed {
                cells.push(format!("and_b32 $s{}, {register}, 0", 100 + index));
                address = format!("[{name} + $s{}]", 100 + index);
            }
        }
        let guarded = piece.guarded && last.is_some();
        let order = ["rlx", "scacq", "screl", "scar"][piece.order];
        let load_order = ["rlx", "scacq", "scacq", "rlx"][piece.order];
        let store_order = ["rlx", "screl", "screl", "rlx"][piece.order];
        let to = format!("$s{index}");
        let mut assigns = true;
        cells.push(match piece.kind {
            0 => format!("ld_{segment}_u32 {to}, {address}"),
            1..=3 => format!("atomic_ld_{segment}_{load_order}_{scope}_u32 {to}, {address}"),
            4 => format!("atomic_exch_{segment}_{order}_{scope}_u32 {to}, {address}, {value}"),
            5 => {
                format!("await_atomic_ld_{segment}_{load_order}_{scope}_u32 {to}, {address}, {}", piece.value)
            }
            kind => {
                assigns = false;
                match kind {
                    6 => format!("st_{segment}_u32 {value}, {address}"),
                    7..=9 => format!("atomic_st_{segment}_{store_order}_{scope}_u32 {value}, {address}"),
                    10 => format!("atomicnoret_add_{segment}_{order}_{scope}_u32 {address}, {value}"),
                    _ => format!("memfence_{}_{scope}", ["scar", "scacq", "screl", "scar"][piece.order]),
                }
            }
        });
        if guarded {
            cells.push(format!("@after{index}:"));
        }
        if assigns {
            last = Some(to);
        }
    }
    cells
}
