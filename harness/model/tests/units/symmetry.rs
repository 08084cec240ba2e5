//! Swaps of interchangeable threads.

use litmus::Test;

use model::internals::find_swaps;

/// Prints the swaps of a test as threads, with a bar if its condition distinguishes them. Placement
/// matters.
fn swap_text(columns: &[&str], init: &str, end: &str) -> String {
    swaps_where(false, columns, init, end)
}

fn swaps_where(placed_by_scope: bool, columns: &[&str], init: &str, end: &str) -> String {
    let cells: Vec<Vec<&str>> = columns.iter().map(|column| column.split("; ").collect()).collect();
    let rows = cells.iter().map(Vec::len).max().unwrap();
    let row = |row: usize| {
        let cells: Vec<&str> = cells.iter().map(|c| c.get(row).copied().unwrap_or("")).collect();
        cells.join(" | ") + " ;"
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let text = format!("VULKAN t\n{{ {init} }}\n{}\n{end}\n", rows.join("\n"));
    let test: Test = litmus::parse(&text, "t").unwrap();
    let model = model::Model::shipped("vulkan").unwrap().unwrap();
    let mut semantic = model.execution_semantics();
    semantic.has_scope_symmetry = placed_by_scope;
    let swaps = find_swaps(&test, semantic);
    let texts: Vec<String> =
        swaps.iter().map(|swap| format!("{}-{}", swap.threads[0], swap.threads[1])).collect();
    texts.join(" ") + if swaps.iter().all(|swap| swap.preserves_condition) { "" } else { " |" }
}

const ALL: &str = "exists (x == 7)";

#[test]
fn identical_threads_are_symmetric() {
    let columns = [
        "P0@sg 0, wg 0, qf 0; st.sc0 x, 1",
        "P1@sg 0, wg 0, qf 0; st.sc0 x, 1",
        "P2@sg 0, wg 0, qf 0; st.sc0 x, 1",
    ];
    assert_eq!(swap_text(&columns, "x = 0;", ALL), "0-1 1-2");
    // A thread in a separate subgroup has no counterpart, and its subgroup cannot be swapped with one of
    // two threads.
    let other_subgroup = [columns[0], columns[1], "P2@sg 1, wg 0, qf 0; st.sc0 x, 1"];
    assert_eq!(swap_text(&other_subgroup, "x = 0;", ALL), "0-1");
    // Another value, another path, another strength.
    for other in ["st.sc0 x, 2", "st.sc0 x, 1; st.sc0 x, 1", "st.nonpriv.sc0 x, 1", "ld.sc0 r0, x"] {
        let columns = [columns[0], columns[1], &format!("P2@sg 0, wg 0, qf 0; {other}")];
        assert_eq!(swap_text(&columns, "x = 0;", ALL), "0-1", "{other}");
    }
    let branch = |value| format!("ld.sc0 r0, x; bne r0, {value}, LC00; st.sc0 x, 1; LC00:");
    let branches = [1, 1, 2].map(branch);
    let columns: Vec<String> =
        branches.iter().enumerate().map(|(i, b)| format!("P{i}@sg 0, wg 0, qf 0; {b}")).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    assert_eq!(swap_text(&columns, "x = 0;", ALL), "0-1");
}

/// A thread that shares its subgroup or workgroup with another one stays in it.
#[test]
fn threads_of_different_groups_are_symmetric_if_each_is_alone() {
    let swaps_for_places = |places: [(u32, u32); 3]| {
        let column = |(id, (wg, sg)): (usize, &(u32, u32))| {
            format!("P{id}@sg {sg}, wg {wg}, qf 0; st.atom.sg.sc0 x, 1")
        };
        let columns: Vec<String> = places.iter().enumerate().map(column).collect();
        swap_text(&columns.iter().map(String::as_str).collect::<Vec<_>>(), "x = 0;", ALL)
    };
    assert_eq!(swaps_for_places([(0, 0), (1, 0), (2, 0)]), "0-1 1-2");
    assert_eq!(swaps_for_places([(0, 0), (0, 1), (0, 2)]), "0-1 1-2");
    assert_eq!(swaps_for_places([(0, 0), (0, 0), (1, 0)]), "0-1");
    assert_eq!(swaps_for_places([(0, 0), (0, 1), (1, 0)]), "0-1");
}

/// Workgroup and subgroup placement is compared only if some scope is as narrow.
#[test]
fn threads_are_symmetric_across_unnamed_placements() {
    let swaps_for_bodies = |bodies: [&str; 2]| {
        let places = [(0, 0), (0, 0), (0, 1), (1, 0)];
        let columns: Vec<String> = places
            .iter()
            .enumerate()
            .map(|(id, (wg, sg))| format!("P{id}@sg {sg}, wg {wg}, qf 0; {}", bodies[usize::from(id == 0)]))
            .collect();
        swaps_where(true, &columns.iter().map(String::as_str).collect::<Vec<_>>(), "x = 0;", ALL)
    };
    let same = |body: &str| swaps_for_bodies([body, body]);
    assert_eq!(same("st.sc0 x, 1"), "0-1 1-2 2-3");
    assert_eq!(same("st.atom.rel.dv.sc0.semsc0 x, 1"), "0-1 1-2 2-3");
    assert_eq!(same("st.atom.rel.qf.sc0.semsc0 x, 1"), "0-1 1-2 2-3");
    // Of a workgroup, its threads; of a subgroup, those of one.
    assert_eq!(same("st.atom.rel.wg.sc0.semsc0 x, 1"), "0-1 1-2");
    assert_eq!(same("st.atom.rel.sg.sc0.semsc0 x, 1"), "0-1");
    assert_eq!(same("st.atom.inv.sc0 x, 1"), "0-1");
    assert_eq!(same("st.sc0 x, 1; cbar.acq_rel.dv.semsc0 0"), "0-1 1-2");
    assert_eq!(same("st.sc0 x, 1; cbar.execsg.acq_rel.dv.semsc0 0"), "0-1");
    // One narrow scope anywhere.
    let narrow = ["st.atom.dv.sc0 x, 1", "ld.atom.sg.sc0 r0, x"];
    assert_eq!(swaps_for_bodies(narrow), "");
    // Chains over several storage classes, which only operations of device scope extend to the device.
    let chain = |scope| format!("membar.acq.{scope}.semsc0; st.sc0 x, 1; membar.rel.{scope}.semsc0.semsc1");
    assert_eq!(same(&chain("qf")), "0-1");
    assert_eq!(same(&chain("dv")), "0-1 1-2 2-3");
}

#[test]
fn conditions_and_filters_are_compared_apart_from_their_order() {
    let columns = ["P0@sg 0, wg 0, qf 0; ld.sc0 r0, x", "P1@sg 0, wg 1, qf 0; ld.sc0 r0, x"];
    let swaps_with = |end: &str| swap_text(&columns, "x = 0;", end);
    assert_eq!(swaps_with("exists (P0:r0 == 1 /\\ P1:r0 == 2)"), "0-1 |");
    assert_eq!(swaps_with("exists (P0:r0 == 1 /\\ x == 0 /\\ P1:r0 == 1)"), "0-1");
    assert_eq!(swaps_with("exists (P0:r0 == 1 /\\ (x == 0 \\/ P1:r0 == 1))"), "0-1 |");
    assert_eq!(swaps_with("exists (P1:r0 == P0:r0)"), "0-1");
    assert_eq!(swaps_with("filter (P0:r0 == 1)\nexists (x == 1)"), "");
}

/// Threads of a queue lock: each stores its number and waits at the flag of the thread whose number it reads.
fn numbered_swaps(change: &dyn Fn(usize, String) -> String, init: &str, end: &str) -> String {
    let column = |own: usize| {
        let waits = (1..=3).filter(|other| *other != own).map(|other| {
            format!("bne r0, {other}, LC0{other}; ld.atom.acq.dv.sc0.semsc0 r1, g{other}; goto LC90; LC0{other}:; ")
        });
        let code = format!(
            "P{}@sg 0, wg {own}, qf 0; rmw.atom.acq_rel.dv.sc0.semsc0 r0, t, {own}; {}LC90:; \
             st.atom.rel.dv.sc0.semsc0 g{own}, 1",
            own - 1,
            waits.collect::<String>()
        );
        change(own, code)
    };
    let columns: Vec<String> = (1..=3).map(column).collect();
    swap_text(&columns.iter().map(String::as_str).collect::<Vec<_>>(), init, end)
}

#[test]
fn threads_are_symmetric_with_their_numbers_and_locations() {
    let init = "x = 0; t = 0; g1 = 0; g2 = 0; g3 = 0;";
    let same = |_: usize, code: String| code;
    assert_eq!(numbered_swaps(&same, init, ALL), "0-1 1-2");
    assert_eq!(numbered_swaps(&same, init, "exists (P1:r1 == 1)"), "0-1 1-2 |");
    // Conditions that name a number, a flag or a register with a number.
    for condition in ["t == 1", "g1 == 1", "P2:r0 == 1"] {
        assert_eq!(numbered_swaps(&same, init, &format!("exists ({condition})")), "0-1 1-2 |", "{condition}");
    }
    assert_eq!(numbered_swaps(&same, init, "filter (t == 1)\nexists (x == 1)"), "");
    // The memory starts with a number, or with different values of the flags.
    assert_eq!(numbered_swaps(&same, "x = 0; t = 2; g1 = 0; g2 = 0; g3 = 0;", ALL), "");
    assert_eq!(numbered_swaps(&same, "x = 0; t = 0; g1 = 0; g2 = 0; g3 = 1;", ALL), "0-1");
    assert_eq!(numbered_swaps(&same, "x = 0; t = 0; g1 = 0; g2 = 0; u64 g3 = 0;", ALL), "0-1");
    // Numbers that are computed with or compared by size.
    let computed = |_: usize, code: String| code.replace("LC90:", "LC90:; add r3, r0, 1");
    assert_eq!(numbered_swaps(&computed, init, ALL), "");
    let ordered = |_: usize, code: String| code.replace("bne r0", "blt r0");
    assert_eq!(numbered_swaps(&ordered, init, ALL), "");
    // 257 is 1 in a byte.
    let wide = |_: usize, code: String| code.replace("LC90:", "LC90:; st.atom.dv.sc0 t, 257");
    assert_eq!(numbered_swaps(&wide, init, ALL), "");
    // The third thread distinguishes the first two.
    let one_only =
        |own: usize, code: String| if own == 3 { code.replace("bne r0, 1,", "bne r0, 9,") } else { code };
    assert_eq!(numbered_swaps(&one_only, init, ALL), "");
    let one_stronger = |own: usize, code: String| {
        if own == 3 { code.replace("semsc0 r1, g1", "semsc0.semsc1 r1, g1") } else { code }
    };
    assert_eq!(numbered_swaps(&one_stronger, init, ALL), "");
}
