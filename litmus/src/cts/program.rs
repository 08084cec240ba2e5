//! Generates the program of a CTS name: two threads, or four for the transitive ones, in the native syntax.

use super::{
    Acquirer, Coherence, CtsCase, GeneratedCase, GuardAccess, Permuted, Range, Shape, Storage, Sync,
    TransitiveCase, Type,
};

/// The parameters that determine the instructions of two synchronizing sides.
#[derive(Clone, Copy)]
struct SyncSides {
    scalar: Type,
    coherence: Coherence,
    sync: Sync,
    guard_access: GuardAccess,
    range: Range,
    payload: Storage,
    guard: Storage,
    /// True if both sides are in one workgroup.
    same_workgroup: bool,
}

/// A thread's column of the program table.
struct ThreadColumn {
    workgroup: u32,
    subgroup: u32,
    lines: Vec<String>,
}

pub(super) fn program_text(case: &CtsCase) -> String {
    match case {
        CtsCase::Generated(case) => generated_program(case),
        CtsCase::Transitive(case) => transitive_program(case),
        CtsCase::Permuted(case) => permuted_program(*case),
    }
}

impl Storage {
    fn class_keyword(self) -> &'static str {
        match self {
            Storage::Buffer | Storage::Address => "sc0",
            Storage::Workgroup => "sc1",
            Storage::Image => "sc2",
        }
    }

    fn declaration_prefix(self, scalar: Type) -> String {
        let kind = match self {
            Storage::Buffer => "buffer",
            Storage::Image => "image",
            Storage::Workgroup => "workgroup",
            Storage::Address => "address",
        };
        // The CTS uses the 32-bit format instead of 64-bit images.
        let scalar = if self == Storage::Image && scalar == Type::U64 { Type::U32 } else { scalar };
        format!("{kind} {}", scalar.name())
    }
}

impl Range {
    fn scope_keyword(self) -> &'static str {
        match self {
            Range::Device => "dv",
            Range::QueueFamily => "qf",
            Range::Workgroup => "wg",
            Range::Subgroup => "sg",
        }
    }
}

impl SyncSides {
    /// Returns `.semsc0 …`: the storage classes of payload and guard.
    fn semantics_classes(&self) -> String {
        let mut classes =
            [self.payload.class_keyword(), self.guard.class_keyword()].map(|class| format!(".sem{class}"));
        classes.sort_unstable();
        if classes[0] == classes[1] || self.sync.is_control_barrier() {
            return format!(".sem{}", self.payload.class_keyword());
        }
        classes.concat()
    }

    /// Returns `.semsc0 …` with the availability of a release or the visibility of an acquire.
    fn ordered_suffix(&self, releases: bool) -> String {
        let operation = match (self.coherence, releases) {
            (Coherence::Coherent, _) => "",
            (Coherence::NonCoherent, true) => ".semav",
            (Coherence::NonCoherent, false) => ".semvis",
        };
        format!("{}{operation}", self.semantics_classes())
    }

    fn fence(&self, releases: bool) -> String {
        let order = if releases { "rel" } else { "acq" };
        format!("membar.{order}.{}{}", self.range.scope_keyword(), self.ordered_suffix(releases))
    }

    /// Returns the store of 1 to the payload, or its load into `r1`.
    fn payload_access(&self, stores: bool) -> String {
        let (class, scope) = (self.payload.class_keyword(), self.range.scope_keyword());
        let (word, operation, operands) = if stores { ("st", "av", "x, 1") } else { ("ld", "vis", "r1, x") };
        match self.coherence {
            Coherence::Coherent => format!("{word}.{operation}.{scope}.{class} {operands}"),
            Coherence::NonCoherent => format!("{word}.nonpriv.{class} {operands}"),
        }
    }

    /// Returns the atomic access of a side to the guard; the acquiring side reads it into `r0`.
    fn guard_access(&self, releases: bool, is_ordered: bool) -> String {
        let (class, scope) = (self.guard.class_keyword(), self.range.scope_keyword());
        let (order, suffix) = match (is_ordered, releases) {
            (false, _) => ("", String::new()),
            (true, true) => (".rel", self.ordered_suffix(true)),
            (true, false) => (".acq", self.ordered_suffix(false)),
        };
        let (word, operands) = match (self.guard_access, releases) {
            (GuardAccess::Write, true) => ("st", "f, 1"),
            (GuardAccess::Write, false) => ("ld", "r0, f"),
            (GuardAccess::Exchange, true) => ("rmw", "r9, f, 1"),
            (GuardAccess::Exchange, false) => ("rmw", "r0, f, 2"),
        };
        format!("{word}.atom{order}.{scope}.{class}{suffix} {operands}")
    }

    /// Returns the lines of the releasing side after its access to the payload.
    fn release_lines(&self) -> Vec<String> {
        match self.sync {
            Sync::FenceFence | Sync::FenceAtomic => vec![self.fence(true), self.guard_access(true, false)],
            Sync::AtomicFence | Sync::AtomicAtomic => vec![self.guard_access(true, true)],
            Sync::ControlBarrier | Sync::ControlAndMemoryBarrier => self.control_barrier(),
        }
    }

    /// Returns the lines of the acquiring side before its access to the payload; the guard is read into `r0`.
    ///
    /// An early read of the guard shows overlap and must not synchronize. The barrier after it keeps
    /// compilers from merging the two reads; its scope does not reach the other side.
    fn acquire_lines(&self) -> Vec<String> {
        let (guard, scope) = (self.guard.class_keyword(), self.range.scope_keyword());
        let near = match (self.same_workgroup, self.range) {
            (false, _) => Some("wg"),
            (true, Range::Subgroup) => None,
            (true, Range::Device | Range::QueueFamily | Range::Workgroup) => Some("sg"),
        };
        let mut lines = vec![format!("ld.atom.{scope}.{guard} r2, f")];
        lines.extend(near.map(|near| format!("membar.acq.{near}.sem{guard}")));
        match self.sync {
            Sync::FenceFence | Sync::AtomicFence => {
                lines.extend([self.guard_access(false, false), self.fence(false)]);
            }
            Sync::FenceAtomic | Sync::AtomicAtomic => lines.push(self.guard_access(false, true)),
            Sync::ControlBarrier | Sync::ControlAndMemoryBarrier => return self.control_barrier(),
        }
        lines
    }

    /// Returns a control barrier for both sides, with equal execution and memory scope.
    fn control_barrier(&self) -> Vec<String> {
        let scope = self.range.scope_keyword();
        let execution = if self.range == Range::Subgroup { ".execsg" } else { "" };
        if self.sync == Sync::ControlAndMemoryBarrier {
            return vec![self.fence(true), format!("cbar{execution}.{scope} 0"), self.fence(false)];
        }
        let operations = if self.coherence == Coherence::NonCoherent { ".semav.semvis" } else { "" };
        vec![format!("cbar{execution}.acq_rel.{scope}{}{operations} 0", self.semantics_classes())]
    }
}

fn generated_program(case: &GeneratedCase) -> String {
    let same_workgroup = matches!(case.range, Range::Workgroup | Range::Subgroup)
        || [case.payload.storage, case.guard.storage].contains(&Storage::Workgroup);
    let sides = SyncSides {
        scalar: case.scalar,
        coherence: case.coherence,
        sync: case.sync,
        guard_access: case.guard_access,
        range: case.range,
        payload: case.payload.storage,
        guard: case.guard.storage,
        same_workgroup,
    };
    let has_control_barrier = case.sync.is_control_barrier();
    // The first thread releases, the second one acquires.
    let (first, second) = match case.shape {
        Shape::MessagePassing => (sides.payload_access(true), sides.payload_access(false)),
        Shape::WriteAfterRead => (sides.payload_access(false), sides.payload_access(true)),
    };
    let releasing: Vec<String> = std::iter::once(first).chain(sides.release_lines()).collect();
    let mut acquiring = sides.acquire_lines();
    if has_control_barrier {
        acquiring.push(second);
    } else {
        acquiring.extend(guard_line(second));
    }
    let columns = [
        ThreadColumn { workgroup: 0, subgroup: 0, lines: releasing },
        ThreadColumn {
            workgroup: u32::from(!same_workgroup),
            subgroup: u32::from(same_workgroup && case.range != Range::Subgroup),
            lines: acquiring,
        },
    ];
    let forbidden = match (case.shape, has_control_barrier) {
        (Shape::MessagePassing, false) => "P1:r0 == 1 /\\ P1:r1 == 0",
        (Shape::MessagePassing, true) => "P1:r1 == 0",
        // The value is written only if the guard was seen.
        (Shape::WriteAfterRead, _) => "P0:r1 == 1",
    };
    let mut declarations = format!("{} x = 0;", sides.payload.declaration_prefix(sides.scalar));
    if !has_control_barrier {
        declarations += &format!(" {} f = 0;", sides.guard.declaration_prefix(sides.scalar));
    }
    assemble_test(&CtsCase::Generated(*case).test_id(), "", &declarations, &columns, forbidden)
}

fn transitive_program(case: &TransitiveCase) -> String {
    // Data that crosses workgroups is written and read by other threads than those that synchronize. The
    // synchronizing threads make it available and visible; accesses to the payload reach only their
    // workgroup.
    let sides = SyncSides {
        scalar: Type::U32,
        coherence: Coherence::NonCoherent,
        sync: case.sync,
        guard_access: GuardAccess::Write,
        range: Range::Device,
        payload: case.payload.storage,
        guard: case.guard.storage,
        same_workgroup: false,
    };
    let local =
        SyncSides { coherence: case.coherence, range: Range::Workgroup, sync: Sync::ControlBarrier, ..sides };
    let relay: Vec<String> = local.control_barrier().into_iter().chain(sides.release_lines()).collect();
    let writer: Vec<String> =
        std::iter::once(local.payload_access(true)).chain(local.control_barrier()).collect();
    let mut columns = vec![
        ThreadColumn { workgroup: 0, subgroup: 0, lines: writer },
        ThreadColumn { workgroup: 0, subgroup: 1, lines: relay },
    ];
    let mut declarations = format!(
        "{} x = 0; {} f = 0;",
        sides.payload.declaration_prefix(Type::U32),
        sides.guard.declaration_prefix(Type::U32)
    );
    match case.acquirer {
        Acquirer::Reader => {
            let mut reader = sides.acquire_lines();
            reader.extend(guard_line(local.payload_access(false)));
            columns.push(ThreadColumn { workgroup: 1, subgroup: 0, lines: reader });
        }
        Acquirer::Relay => {
            // A separate buffer variable communicates the guard to the workgroup.
            declarations += " buffer u32 s = 0;";
            let relay_barrier = if sides.payload.class_keyword() == "sc0" {
                local.control_barrier()
            } else {
                let words = local.control_barrier();
                words.iter().map(|line| line.replacen(".semsc2", ".semsc0.semsc2", 1)).collect()
            };
            let (relay_store, relay_load) = match case.coherence {
                Coherence::Coherent => ("st.av.wg.sc0 s, r0", "ld.vis.wg.sc0 r0, s"),
                Coherence::NonCoherent => ("st.nonpriv.sc0 s, r0", "ld.nonpriv.sc0 r0, s"),
            };
            let mut second = sides.acquire_lines();
            second.push(relay_store.to_owned());
            second.extend(relay_barrier.iter().cloned());
            let mut reader = relay_barrier;
            reader.push(relay_load.to_owned());
            reader.extend(guard_line(local.payload_access(false)));
            columns.push(ThreadColumn { workgroup: 1, subgroup: 0, lines: second });
            columns.push(ThreadColumn { workgroup: 1, subgroup: 1, lines: reader });
        }
    }
    let reader = columns.len() - 1;
    let forbidden = format!("P{reader}:r0 == 1 /\\ P{reader}:r1 == 0");
    let expect = "expect: vulkan-nochains allowed racy\n";
    assemble_test(&CtsCase::Transitive(*case).test_id(), expect, &declarations, &columns, &forbidden)
}

fn permuted_program(case: Permuted) -> String {
    let sides = SyncSides {
        scalar: Type::U32,
        coherence: Coherence::Coherent,
        sync: if case == Permuted::Barrier { Sync::FenceFence } else { Sync::AtomicAtomic },
        guard_access: GuardAccess::Write,
        range: Range::Device,
        payload: Storage::Buffer,
        guard: Storage::Buffer,
        same_workgroup: false,
    };
    let mut reader = sides.acquire_lines();
    let (write, read) = match case {
        Permuted::PlainPayload => {
            reader.extend(guard_line(sides.payload_access(false)));
            (sides.payload_access(true), None)
        }
        Permuted::Barrier | Permuted::ReleaseAcquire => {
            ("st.atom.dv.sc0 x, 1".to_owned(), Some("ld.atom.dv.sc0 r1, x".to_owned()))
        }
    };
    reader.extend(read);
    let columns = [
        ThreadColumn {
            workgroup: 0,
            subgroup: 0,
            lines: std::iter::once(write).chain(sides.release_lines()).collect(),
        },
        ThreadColumn { workgroup: 1, subgroup: 0, lines: reader },
    ];
    let declarations = "buffer u32 x = 0; buffer u32 f = 0;";
    assemble_test(&CtsCase::Permuted(case).test_id(), "", declarations, &columns, "P1:r0 == 1 /\\ P1:r1 == 0")
}

/// Returns the line under a branch on the guard.
fn guard_line(line: String) -> [String; 3] {
    ["bne r0, 1, LC00".to_owned(), line, "LC00:".to_owned()]
}

fn assemble_test(
    id: &str,
    expect: &str,
    declarations: &str,
    columns: &[ThreadColumn],
    forbidden: &str,
) -> String {
    let (family, rest) = id.strip_prefix("cts/").and_then(|id| id.split_once('/')).unwrap_or(("", id));
    let shape = match family {
        "message_passing" => "MP",
        "write_after_read" => "WAR",
        _ => "ISA2",
    };
    let headers: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(number, column)| format!("P{number}@sg {}, wg {}, qf 0", column.subgroup, column.workgroup))
        .collect();
    let rows = columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
    let width = |column: usize| {
        let lines = columns.get(column).into_iter().flat_map(|column| &column.lines);
        lines.chain(headers.get(column)).map(String::len).max().unwrap_or(0)
    };
    let row = |cells: Vec<&str>| {
        let cells: Vec<String> =
            cells.iter().enumerate().map(|(column, cell)| format!("{cell:0$}", width(column))).collect();
        format!("{} ;\n", cells.join(" | "))
    };
    let mut table = row(headers.iter().map(String::as_str).collect());
    for number in 0..rows {
        let line = |column: &ThreadColumn| column.lines.get(number).cloned().unwrap_or_default();
        let lines: Vec<String> = columns.iter().map(line).collect();
        table += &row(lines.iter().map(String::as_str).collect());
    }
    format!(
        "VULKAN {shape}+{rest}\n\
         expect: vulkan forbidden free\n\
         {expect}\
         origin: Vulkan CTS, memory_model.{family}\n\
         {{ {declarations} }}\n\
         {table}\
         exists ({forbidden})\n"
    )
}
