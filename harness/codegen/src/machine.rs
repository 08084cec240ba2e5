//! The text that a driver prints for machine code, line by line.
//!
//! The text is made for people and differs by driver. Of AMD's assembly the lines that have to do with memory are told
//! from the others; of any other text a line is a line. A text without an access to memory is no machine code of a
//! kernel, which at least writes its results: drivers print an apology where they have no disassembler.

use crate::normal;

/// Machine code as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The lines in order, without blank ones.
    pub lines: Vec<Line>,
}

/// A line of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text without indentation, encodings and comments.
    pub text: String,
    /// What it is.
    pub kind: LineKind,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// A place to jump to.
    Label,
    /// Reads or writes memory that a test could see.
    Access(Access),
    /// Reads descriptors: memory that only the driver writes.
    Descriptor,
    /// Waits for accesses, waits for other subgroups, or changes what caches hold.
    Order,
    /// A jump.
    Jump,
    /// Anything else.
    Other,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// What it does.
    pub operation: Operation,
    /// Which memory it goes to.
    pub path: Path,
    /// The constant part of its address in bytes, where the path has one.
    pub offset: u64,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes as one.
    Atomic,
}

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// A buffer by its descriptor.
    Buffer,
    /// Memory by its address.
    Address,
    /// An image, or a buffer with a format.
    Image,
    /// Memory of the workgroup.
    Workgroup,
}

/// A text that is no machine code of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMachineCode {
    /// There is nothing.
    #[error("the driver shows no machine code")]
    Empty,
    /// Nothing in it accesses memory.
    #[error("not disassembled: `{0}`")]
    NoAccess(String),
}

/// Who printed a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// LLVM's assembly for AMD's graphics cores, or what ACO prints where it has no disassembler.
    Amd,
    /// Anything else.
    Other,
}

impl Machine {
    /// Reads a text.
    ///
    /// # Errors
    /// [`NotMachineCode`] where it cannot be what a compiler made of a kernel.
    pub fn read(text: &str, dialect: Dialect) -> Result<Machine, NotMachineCode> {
        let lines: Vec<Line> = text.lines().filter_map(|line| read_line(line, dialect)).collect();
        let Some(first) = lines.first() else { return Err(NotMachineCode::Empty) };
        let accesses = |line: &Line| matches!(line.kind, LineKind::Access(_));
        if dialect == Dialect::Amd && !lines.iter().any(accesses) {
            return Err(NotMachineCode::NoAccess(first.text.clone()));
        }
        Ok(Machine { lines })
    }

    /// The text that stands for this one when texts are compared: registers and labels renamed in the order of their
    /// first use, what only fills time left out.
    pub fn normal(&self) -> Vec<String> {
        normal::lines(self)
    }

    /// What of it has to do with memory: accesses, waits, barriers and cache operations, without registers.
    pub fn skeleton(&self) -> Vec<String> {
        normal::skeleton(self)
    }

    /// The number of instructions.
    pub fn instructions(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Label).count()
    }
}

fn read_line(line: &str, dialect: Dialect) -> Option<Line> {
    let text = match dialect {
        Dialect::Amd => line.split([';', '/']).next().unwrap_or(line).trim(),
        Dialect::Other => line.trim(),
    };
    if text.is_empty() {
        return None;
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = match dialect {
        Dialect::Amd => kind_of(&text),
        Dialect::Other => LineKind::Other,
    };
    Some(Line { text, kind })
}

/// The mnemonic of a line: ACO's own form of the code puts what is defined before it.
pub(crate) fn mnemonic(text: &str) -> &str {
    let text = text.rsplit_once(" = ").map_or(text, |(_, instruction)| instruction);
    let word = text.split(' ').next().unwrap_or(text);
    word.strip_prefix("p_").map_or(word, |_| word)
}

fn kind_of(text: &str) -> LineKind {
    if text.ends_with(':') || text.starts_with("BB") {
        return LineKind::Label;
    }
    let mnemonic = mnemonic(text);
    let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    if is(&[
        "s_waitcnt",
        "s_wait_",
        "s_barrier",
        "buffer_gl",
        "buffer_wb",
        "buffer_inv",
        "global_inv",
        "global_wb",
        "s_dcache",
        "s_gl1_inv",
    ]) {
        return LineKind::Order;
    }
    if is(&["s_cbranch", "s_branch", "s_setpc"]) {
        return LineKind::Jump;
    }
    let path = if is(&["buffer_", "s_buffer_load"]) {
        Path::Buffer
    } else if is(&["global_", "flat_"]) {
        Path::Address
    } else if is(&["image_", "tbuffer_"]) {
        Path::Image
    } else if is(&[
        "ds_read",
        "ds_write",
        "ds_load",
        "ds_store",
        "ds_add",
        "ds_sub",
        "ds_and",
        "ds_or",
        "ds_xor",
        "ds_min",
        "ds_max",
        "ds_cmp",
        "ds_wrxchg",
        "ds_storexchg",
        "ds_rsub",
        "ds_mskor",
        "ds_inc",
        "ds_dec",
    ]) {
        Path::Workgroup
    } else if is(&["s_load"]) {
        return LineKind::Descriptor;
    } else {
        return LineKind::Other;
    };
    let operation = if path == Path::Workgroup {
        match mnemonic {
            _ if mnemonic.starts_with("ds_storexchg") => Operation::Atomic,
            _ if is(&["ds_read", "ds_load"]) => Operation::Load,
            _ if is(&["ds_write", "ds_store"]) => Operation::Store,
            _ => Operation::Atomic,
        }
    } else if mnemonic.contains("atomic") {
        Operation::Atomic
    } else if mnemonic.contains("store") {
        Operation::Store
    } else {
        Operation::Load
    };
    // Formats and 16-bit halves: `buffer_load_format_x` goes the way of texels.
    let path = if mnemonic.contains("format") { Path::Image } else { path };
    LineKind::Access(Access { operation, path, offset: offset_of(text) })
}

/// The constant of an address: `offset:256`, or the last operand of a scalar load.
fn offset_of(text: &str) -> u64 {
    let named = text.split([' ', ',']).find_map(|word| word.strip_prefix("offset:"));
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    if let Some(named) = named {
        return number(named).unwrap_or(0);
    }
    if mnemonic(text).starts_with("s_buffer_load") {
        let operand = text.split(", ").nth(2).and_then(|operand| operand.split(' ').next());
        return operand.and_then(number).unwrap_or(0);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> LineKind {
        Machine::read(&format!("{text}\nbuffer_store_dword v0, off, s[0:3], 0"), Dialect::Amd).unwrap().lines
            [0]
        .kind
    }

    fn access(operation: Operation, path: Path, offset: u64) -> LineKind {
        LineKind::Access(Access { operation, path, offset })
    }

    #[test]
    fn lines_are_told_apart() {
        let cases = [
            ("BB3:", LineKind::Label),
            ("\ts_waitcnt vmcnt(0)    ; bf8c3f70", LineKind::Order),
            ("s_wait_loadcnt 0x0", LineKind::Order),
            ("s_barrier_signal -1", LineKind::Order),
            ("buffer_gl0_inv", LineKind::Order),
            ("s_cbranch_execz BB6", LineKind::Jump),
            ("s_load_dwordx4 s[4:7], s[2:3], 0x10", LineKind::Descriptor),
            ("v_mov_b32_e32 v0, 1", LineKind::Other),
            (
                "buffer_load_dword v2, v1, s[8:11], 0 offen offset:256 glc dlc ; e030d100",
                access(Operation::Load, Path::Buffer, 256),
            ),
            ("s_buffer_load_dword s0, s[4:7], 0x100 glc dlc", access(Operation::Load, Path::Buffer, 256)),
            ("buffer_atomic_add v0, off, s[0:3], 0 glc", access(Operation::Atomic, Path::Buffer, 0)),
            ("global_store_b32 v[0:1], v2, off", access(Operation::Store, Path::Address, 0)),
            ("buffer_load_format_x v0, v1, s[0:3], 0 idxen", access(Operation::Load, Path::Image, 0)),
            ("ds_store_b32 v0, v1 offset:4", access(Operation::Store, Path::Workgroup, 4)),
            ("ds_add_rtn_u32 v0, v1, v2", access(Operation::Atomic, Path::Workgroup, 0)),
            ("ds_swizzle_b32 v0, v1", LineKind::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn an_apology_is_no_machine_code() {
        let apology = "Shader disassembly is not supported in the current configuration.";
        let error = Machine::read(apology, Dialect::Amd).unwrap_err();
        assert_eq!(error.to_string(), format!("not disassembled: `{apology}`"));
        assert_eq!(Machine::read("\n  \n", Dialect::Other).unwrap_err(), NotMachineCode::Empty);
    }
}
