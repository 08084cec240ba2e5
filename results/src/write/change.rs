//! Changes of shaders as text.

use crate::wire::{
    ChangeMemory, ChangeQualifier, ChangeRecord, InsertionAnchor, InsertionSide, ReplacedAccesses,
    ShaderChange,
};

/// Formats a change as an imperative clause, without its position.
pub fn describe_change(change: &ShaderChange) -> String {
    describe_at(change, "this line")
}

/// Formats a change with its position.
pub fn describe_placed_change(record: &ChangeRecord) -> String {
    let line = record.line.map_or(String::new(), |line| format!(":{line}"));
    let here =
        statement_in_line(record).map_or("this line".to_owned(), |code| format!("`{code}` in this line"));
    format!("{}{line}: {}", record.file.as_deref().unwrap_or_default(), describe_at(&record.change, &here))
}

/// Returns the statement next to inserted code, if the edits place the code within a line.
fn statement_in_line(record: &ChangeRecord) -> Option<&str> {
    let ShaderChange::Insert { code, side, anchor: InsertionAnchor::Line } = &record.change else {
        return None;
    };
    let edit = record.edits.iter().find(|edit| edit.removed > 0 && Some(edit.line) == record.line)?;
    let lines: Vec<&str> = edit.text.lines().map(str::trim).collect();
    let inserted = |(at, line): (usize, &&str)| Some((at, line.strip_suffix(code.as_str())?.len()));
    let (at, length) = lines.iter().enumerate().find_map(inserted)?;
    let before = if length > 0 { lines[at][..length].trim_end() } else { lines.get(..at)?.last()? };
    let after = lines.get(at + 1)?;
    match side {
        InsertionSide::Before => Some(after),
        InsertionSide::After => Some(before),
        InsertionSide::Around => None,
    }
}

/// Formats the changes that remove a finding.
pub fn describe_fix(parts: &[ChangeRecord]) -> String {
    parts.iter().map(describe_placed_change).collect::<Vec<_>>().join("; ")
}

/// Formats changes as a title in the imperative that names their lines.
pub fn fix_title(parts: &[ChangeRecord]) -> String {
    let title = |record: &ChangeRecord| {
        let Some(line) = record.line else { return describe_change(&record.change) };
        let here = format!("line {line}");
        let (words, at) = (describe_change(&record.change), describe_at(&record.change, &here));
        if words == at { format!("{words} ({here})") } else { at }
    };
    let mut titles: Vec<String> = parts.iter().map(title).collect();
    titles.dedup();
    let title = titles.join(" and ");
    let first = title.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + title.get(1..).unwrap_or_default()
}

/// Formats a change of a line.
fn describe_at(change: &ShaderChange, here: &str) -> String {
    match change {
        ShaderChange::Insert { code, side, anchor } => {
            let side = match side {
                InsertionSide::Before => "before",
                InsertionSide::After => "after",
                InsertionSide::Around => "before and after",
            };
            match anchor {
                InsertionAnchor::Line => format!("put `{code}` {side} {here}"),
                InsertionAnchor::ControlledStatement => {
                    format!("put `{code}` {side} the statement that {here} controls")
                }
                InsertionAnchor::Loop => format!("put `{code}` {side} the loop in {here}"),
                InsertionAnchor::LoopBody => {
                    format!("put `{code}` at the end of the body of the loop in {here}")
                }
                InsertionAnchor::Atomic
                | InsertionAnchor::Barrier
                | InsertionAnchor::Read
                | InsertionAnchor::Write => format!("put `{code}` {side} {}", operation_name(*anchor)),
            }
        }
        ShaderChange::Declare { name, qualifier } => {
            let word = match qualifier {
                ChangeQualifier::Coherent => "coherent",
                ChangeQualifier::GloballyCoherent => "globallycoherent",
                ChangeQualifier::NagaCoherent => {
                    return format!(
                        "compile with tint, or declare the elements of `{name}` `atomic`; naga makes plain storage private"
                    );
                }
                ChangeQualifier::OtherCompiler => {
                    return format!(
                        "compile with dxc or slangc; glslang gives `{name}` the qualifiers of another buffer of its type"
                    );
                }
            };
            format!("declare `{name}` {word}")
        }
        ShaderChange::MakeAccessCoherent { name } => format!(
            "make this access of `{name}` coherent like the others: if it is declared coherent, write \
             `x = x + 1` instead of `x++`, because glslang drops the qualifier on the store of `x++`"
        ),
        ShaderChange::StrengthenOrder { operation, acquire, release, class } => {
            let order = match (acquire, release) {
                (true, false) => "Acquire and MakeVisible",
                (false, true) => "Release and MakeAvailable",
                _ => "AcquireRelease, MakeAvailable and MakeVisible",
            };
            let memory = match class {
                ChangeMemory::Buffer => "buffer memory",
                ChangeMemory::Shared => "shared memory",
                ChangeMemory::Image => "images",
                ChangeMemory::Output => "outputs",
            };
            format!("give {} {order} semantics on {memory}", operation_name(*operation))
        }
        ShaderChange::WidenScope { operation } => {
            format!("widen the scope of {} to the queue family", operation_name(*operation))
        }
        ShaderChange::UseAtomic { function, replaces, declares, extension } => {
            let lead = if *declares { "declare the element `atomic` and " } else { "" };
            let replaced = match replaces {
                ReplacedAccesses::LoadAndStore => "instead of this load and store",
                ReplacedAccesses::ComparisonAndStore => "instead of this comparison and store",
                ReplacedAccesses::Store => "for this store, which several invocations may make",
            };
            let extension = extension.as_ref().map(|name| format!(", with {name}")).unwrap_or_default();
            format!("{lead}use `{function}` {replaced}{extension}")
        }
        ShaderChange::MakeAccessesAtomic => {
            "make the racing accesses atomic (they remain unordered)".to_owned()
        }
        ShaderChange::MakeAccessAtomic => "make this access atomic (it remains unordered)".to_owned(),
        ShaderChange::Initialize { name } => format!(
            "initialize `{name}` with `= {{}}` (GL_EXT_null_initializer), or store to each element before it is read"
        ),
        ShaderChange::ReplaceBarrier { new, old } => format!("use `{new}` instead of `{old};`"),
        ShaderChange::ExpandIncrement { new, old } => format!(
            "write `{new}` instead of `{old}`, because glslang drops the qualifier on the store of the latter"
        ),
        ShaderChange::SecondDispatch => {
            "run the code after this barrier in a second dispatch: a barrier orders the invocations of one \
             workgroup, and no workgroup waits for others"
                .to_owned()
        }
        ShaderChange::SplitIf => "split this `if` so that every invocation reaches the barrier".to_owned(),
        ShaderChange::JoinBarriers => "move the barriers of both branches out of this `if`".to_owned(),
        ShaderChange::MoveJump { jump, has_guards } => {
            let guards = if *has_guards { ", and guard the code before that by a condition" } else { "" };
            format!("move this `{jump}` after the last barrier{guards}")
        }
        ShaderChange::MakeLoopUniform => {
            "let every invocation go through the same rounds of this loop, and guard the elements by a condition"
                .to_owned()
        },
        ShaderChange::RestrictStore { condition } => {
            format!("let one invocation make this store: `if ({condition})`")
        }
        ShaderChange::StoreZeroElsewhere { element } => {
            format!("store zero to `{element}` in the other invocations, by an `else`")
        }
        ShaderChange::ClearFirst { name, barrier } => {
            format!("clear `{name}` before {here}, and wait: `{barrier}`")
        }
        ShaderChange::SeparateRounds => {
            "give each round of this reduction its own lanes, and a barrier after it".to_owned()
        }
    }
}

fn operation_name(anchor: InsertionAnchor) -> &'static str {
    match anchor {
        InsertionAnchor::Atomic => "this atomic",
        InsertionAnchor::Barrier => "this barrier",
        InsertionAnchor::Read => "this read",
        InsertionAnchor::Write => "this write",
        InsertionAnchor::Line
        | InsertionAnchor::ControlledStatement
        | InsertionAnchor::Loop
        | InsertionAnchor::LoopBody => "this statement",
    }
}
