//! Random tests for the engine's spin-loop reductions: threads that wait in their last loop and then only
//! read, with at most one feature that disables the reduction.

use litmus::Test;
use proptest::prelude::*;

/// A sequence of drawn numbers.
struct DrawnNumbers(std::vec::IntoIter<u8>);

impl DrawnNumbers {
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.0.next().unwrap_or_default()) % bound
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// A feature that disables the reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReductionBlocker {
    /// An instruction after the loop of every waiting thread, or of one thread.
    AfterLoop(&'static str),
    /// An instruction before the loop.
    BeforeLoop(&'static str),
    /// Another load in the loop (`r0` from the flag), and the end of the iteration.
    Loop(&'static str),
    /// Another access that sets the flag.
    Flag(&'static str),
    /// Another load of the flag.
    Load(&'static str),
    Filter(&'static str),
    /// An order of whole threads. The fourth thread writes a location that others read.
    Sync(&'static str),
    /// Other initial values.
    Initial(&'static str),
}

use ReductionBlocker::{AfterLoop, BeforeLoop, Filter, Flag, Initial, Load, Loop, Sync};

const REDUCTION_BLOCKERS: &[ReductionBlocker] = &[
    AfterLoop("st.av.dv.sc0 x, 2"),
    AfterLoop("st.sc0 y, 2"),
    AfterLoop("st.atom.dv.sc0 x, 2"),
    AfterLoop("st.atom.rel.dv.sc0.semsc0.semav g, 1"),
    AfterLoop("st.sc0 y, 2; st.atom.dv.sc0 g, 1"),
    AfterLoop("ld.atom.acq.dv.sc0.semsc0.semvis r4, g; ld.sc0 r5, y"),
    AfterLoop("ld.atom.dv.sc0 r4, y"),
    AfterLoop("rmw.atom.acq_rel.dv.sc0.semsc0.add r4, g, 1"),
    AfterLoop("rmw.atom.dv.sc0.cas r4, y, 5, 6"),
    AfterLoop("membar.acq_rel.dv.semsc0; st.atom.dv.sc0 g, 1"),
    AfterLoop("cbar.acq_rel.wg.semsc0.semav.semvis 0; ld.sc0 r4, y"),
    AfterLoop("cbar.acq_rel.wg.semsc0 0; st.sc0 y, 3"),
    AfterLoop("LC05:; ld.atom.acq.dv.sc0.semsc0.semvis r4, g; beq r4, 0, LC05; ld.sc0 r5, y"),
    AfterLoop("bne r1, 1, LC06; st.sc0 y, 2; LC06:"),
    BeforeLoop("LC07:; ld.atom.acq.dv.sc0.semsc0.semvis r3, g; beq r3, 0, LC07"),
    BeforeLoop("ld.atom.dv.sc0 r3, g; beq r3, 0, LC08; ld.sc0 r4, y; LC08:"),
    BeforeLoop("st.sc0 f, 0"),
    BeforeLoop("st.atom.wg.sc0 f, 0"),
    Loop("ld.atom.dv.sc0 r3, g; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; beq r3, 0, LC00"),
    Loop("ld.atom.dv.sc0 r3, g; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; beq r3, 1, LC00"),
    Loop("ld.atom.dv.sc0 r3, g; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; beq r3, r0, LC00"),
    Loop("ld.atom.dv.sc0 r3, g; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; bne r3, 1, LC00; beq r0, 0, LC00"),
    Loop("ld.atom.acq.dv.sc0.semsc0.semvis r0, f; goto LC00"),
    Loop("rmw.atom.dv.sc0.add r3, g, 1; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; beq r0, 0, LC00"),
    Loop("add r3, r3, 1; ld.atom.acq.dv.sc0.semsc0.semvis r0, f; beq r0, 0, LC00"),
    Loop("rmw.atom.acq.dv.sc0.semsc0.semvis.cas r0, f, 0, 0; beq r0, 0, LC00"),
    Flag("st.sc0 f, 1"),
    Flag("st.av.dv.sc0 f, 1"),
    Flag("st.atom.rel.dv.sc0.semsc0.semav.u16 f, 1"),
    Flag("st.atom.rel.dv.sc0.semsc0.semav e, 1"),
    Flag("st.atom.rel.wg.sc0.semsc0.semav f, 1"),
    Flag("rmw.atom.rel.wg.sc0.semsc0.semav r0, f, 1"),
    Flag("rmw.atom.rel.dv.sc0.semsc0.semav.u16 r0, f, 1"),
    Load("ld.atom.acq.wg.sc0.semsc0.semvis"),
    Load("ld.atom.acq.sg.sc0.semsc0.semvis"),
    Load("ld.atom.acq.dv.sc0.semsc0.semvis.u16"),
    Load("ld.sc0"),
    Load("ld.vis.dv.sc0"),
    Filter("filter (P0:r0 == 1 /\\ P1:r0 == 1)"),
    Filter("filter (P0:r1 == 1)"),
    Filter("filter (x == 1)"),
    // The order matters only in combination with other features.
    Sync("{ ssw P0 P3; }"),
    Sync("{ ssw P0 P3; }"),
    Sync("{ ssw P0 P3; }"),
    Sync("{ ssw P0 P3; }"),
    Sync("{ ssw P2 P1; }"),
    Initial("x = ?;"),
    Initial("f = ?;"),
];

const DATA: &[&str] = &["st.av.dv.sc0 x, 1", "st.sc0 x, 1", "st.atom.dv.sc0 x, 1", "st.av.wg.sc0 x, 1", ""];
const LEFT: &[&str] =
    &["", "", "", "st.sc0 y, 1", "st.av.dv.sc0 x, 3", "st.atom.dv.sc0 g, 1", "ld.sc0 r2, x"];
const READS: &[&str] = &[
    "ld.vis.dv.sc0 r1, x",
    "ld.vis.dv.sc0 r1, x",
    "ld.sc0 r1, x",
    "ld.nonpriv.sc0 r1, y",
    "ld.sc0.u16 r1, x",
    "ld.sc0 r1, f",
    "ld.vis.dv.sc0 r1, x; bne r1, 1, LC04; ld.sc0 r2, y; LC04:",
    "ld.sc0 {r1, r2}, v",
    "",
];
const CONDITIONS: &[&str] = &[
    "P0:r0 == 1",
    "P0:r1 == 1 /\\ P1:r1 == 1",
    "P0:r1 == 0",
    "x == 1",
    "P1:r1 == 2",
    "f == 1 /\\ P1:r0 == 1",
];

/// Generates tests with waiting threads.
pub fn waiting_tests() -> impl Strategy<Value = Test> {
    proptest::collection::vec(any::<u8>(), 32).prop_map(|drawn| {
        let text = program_text(&mut DrawnNumbers(drawn.into_iter()));
        litmus::parse(&text, "waiting").unwrap_or_else(|errors| panic!("{text}{errors:?}"))
    })
}

fn program_text(draw: &mut DrawnNumbers) -> String {
    let spoiler = (draw.below(4) > 0).then(|| REDUCTION_BLOCKERS[draw.below(REDUCTION_BLOCKERS.len())]);
    let spoils_one = draw.below(3) == 0;
    // Most flags publish earlier writes. The expected value is not always stored.
    let data_count = 2 + draw.below(4);
    let (data, left) = (draw.pick(&DATA[..data_count]), draw.pick(LEFT));
    let flag = match spoiler {
        Some(Flag(flag)) => flag,
        _ if draw.below(5) == 0 => "st.atom.dv.sc0 f, 1",
        _ if draw.below(5) == 0 => "rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis.add r0, f, 1",
        _ => "st.atom.rel.dv.sc0.semsc0.semav f, 1",
    };
    let leaves = ["beq r0, 0, LC00", "blt r0, 1, LC00", "bne r0, 2, LC00"];
    // A racing load is also observable after the loop, unless no thread leaves it.
    let alone = matches!(spoiler, Some(Flag(_) | Load(_))) && draw.below(3) > 0;
    let leaves = leaves[if alone { 2 } else { [0, 1, 2, 0][draw.below(4)] }];
    let prefix = if draw.below(4) == 0 {
        draw.pick(&[
            "ld.sc0 r3, y",
            "st.sc0 y, 4",
            "st.atom.rel.dv.sc0.semsc0.semav g, 1",
            "rmw.atom.acq_rel.dv.sc0.semsc0.add r3, c, 1",
            "st.atom.dv.sc0 f, 0",
            "membar.acq.dv.semsc0",
        ])
    } else {
        ""
    };
    let load = match draw.below(5) {
        0 => "ld.atom.dv.sc0",
        _ => "ld.atom.acq.dv.sc0.semsc0.semvis",
    };
    let (reads, alike) = (draw.pick(READS), draw.below(3) > 0);
    let waits = |draw: &mut DrawnNumbers, at: usize| {
        let spoiler = spoiler.filter(|_| !spoils_one || at == 0);
        let reads = if alike { reads } else { draw.pick(READS) };
        let flag_name = if !alike && draw.below(4) == 0 { "g" } else { "f" };
        let load = if let Some(Load(load)) = spoiler { load } else { load };
        let thread_prefix = if let Some(BeforeLoop(before)) = spoiler { before } else { prefix };
        let turn = match spoiler {
            Some(Loop(turn)) => turn.to_owned(),
            _ => format!("{load} r0, {flag_name}; {leaves}"),
        };
        let blocker_suffix = if let Some(AfterLoop(behind)) = spoiler { behind } else { "" };
        let suffix = if draw.below(2) == 0 { [reads, blocker_suffix] } else { [blocker_suffix, reads] };
        [thread_prefix, "LC00:", &turn, suffix[0], suffix[1]].join("; ")
    };
    let mut columns = vec![waits(draw, 0), waits(draw, 1)];
    columns.push([data, flag, left].join("; "));
    match draw.below(8) {
        _ if matches!(spoiler, Some(Sync(_))) => columns.push("st.av.dv.sc0 x, 5".to_owned()),
        0 => columns.push(waits(draw, 3)),
        1 => columns.push("ld.sc0 r0, x".to_owned()),
        2 => columns.push("st.sc0 y, 5".to_owned()),
        3 => columns.push("st.atom.dv.sc0 g, 1".to_owned()),
        _ => {}
    }
    let together = draw.below(3);
    let place = |thread: usize| match together {
        0 => 0,
        1 => thread / 2,
        _ => thread,
    };
    let initial = if let Some(Initial(initial)) = spoiler { initial } else { "" };
    let sync = if let Some(Sync(sync)) = spoiler { sync } else { "" };
    let filter = if let Some(Filter(filter)) = spoiler { filter } else { "" };
    // Each location has at most one initial value.
    let zero = ["x", "f"].map(|name| if initial.starts_with(name) { "" } else { name });
    let zero: String =
        zero.iter().filter(|name| !name.is_empty()).map(|name| format!("{name} = 0; ")).collect();
    let registers: String = (0..columns.len())
        .flat_map(|thread| (0..2).map(move |register| format!("P{thread}:r{register} = 0; ")))
        .collect();
    let init = format!("{zero}{initial} g = 0; y = 0; c = 0; u32x2 v = 0; e aliases f; {registers}");
    format!(
        "VULKAN waiting\n{{ {init}}}\n{sync}\n{}{filter}\nexists ({})\n",
        table(&columns, place),
        draw.pick(CONDITIONS)
    )
}

/// Formats the rows of a program from columns of instructions separated by `;`.
pub fn table(columns: &[String], workgroup: impl Fn(usize) -> usize) -> String {
    let column = |(id, column): (usize, &String)| {
        let lines = column.split(';').map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        std::iter::once(format!("P{id}@sg 0, wg {}, qf 0", workgroup(id))).chain(lines).collect()
    };
    witness::generate::render_rows(&columns.iter().enumerate().map(column).collect::<Vec<_>>())
}
