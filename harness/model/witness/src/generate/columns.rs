//! Builder of a program as columns of lines.

use crate::generate::SplitMix64;

/// Placement of an agent: queue family, workgroup, subgroup.
pub type AgentPlacement = (usize, usize, usize);

#[derive(Clone, Debug, Default)]
pub struct ProgramColumn {
    /// `None` for a thread of the host.
    pub placement: Option<AgentPlacement>,
    pub lines: Vec<String>,
    pub registers: usize,
    pub guard_count: usize,
}

impl ProgramColumn {
    pub fn at(family: usize, workgroup: usize, subgroup: usize) -> ProgramColumn {
        ProgramColumn { placement: Some((family, workgroup, subgroup)), ..ProgramColumn::default() }
    }

    pub fn push_line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    pub fn new_register(&mut self) -> String {
        self.registers += 1;
        format!("r{}", self.registers - 1)
    }

    /// Skips the following lines unless the register has a value.
    pub fn guard_rest(&mut self, register: &str, value: usize) {
        self.push_line(format!("bne {register}, {value}, LC9{}", self.guard_count));
        self.guard_count += 1;
    }

    /// Emits the ends of the skipped parts.
    pub fn close_guards(&mut self) {
        for guard in 0..self.guard_count {
            self.push_line(format!("LC9{guard}:"));
        }
        self.guard_count = 0;
    }
}

/// A program under construction, in columns.
#[derive(Clone, Debug, Default)]
pub struct ProgramColumns {
    pub declarations: Vec<String>,
    pub system_sync: Vec<String>,
    pub columns: Vec<ProgramColumn>,
    pub filter: Option<String>,
    pub question: String,
}

impl ProgramColumns {
    pub fn declaring(declarations: &[&str]) -> ProgramColumns {
        let declarations = declarations.iter().map(|&declared| declared.to_owned()).collect();
        ProgramColumns { declarations, ..ProgramColumns::default() }
    }

    /// Places `count` agents on the device, in common or in separate groups.
    pub fn add_agents(&mut self, random: &mut SplitMix64, count: usize) {
        for _ in 0..count {
            let column = match self.columns.last() {
                Some(last) if random.chance(25) => {
                    ProgramColumn { placement: last.placement, ..ProgramColumn::default() }
                }
                _ => {
                    let family = usize::from(random.chance(12));
                    // Workgroups of different families are different ones.
                    ProgramColumn::at(family, random.below(2) + 2 * family, random.below(2))
                }
            };
            self.columns.push(column);
        }
    }

    /// Places `count` agents in two workgroups, those of the first workgroup first.
    pub fn add_agents_in_groups(&mut self, random: &mut SplitMix64, count: usize) {
        let first = 1 + random.below(count - 1);
        let family = usize::from(random.chance(25));
        for index in 0..count {
            let group = usize::from(index >= first);
            let subgroup = usize::from(random.chance(30));
            self.columns.push(ProgramColumn::at(group * family, group, subgroup));
        }
    }

    /// Puts the columns into another order.
    pub fn shuffle_columns(&mut self, random: &mut SplitMix64) {
        for index in (1..self.columns.len()).rev() {
            self.columns.swap(index, random.below(index + 1));
        }
    }

    /// Returns the narrowest scope that includes both agents.
    pub fn narrowest_common_scope(&self, a: usize, b: usize) -> &'static str {
        match (self.columns[a].placement, self.columns[b].placement) {
            (here, there) if here == there => "sg",
            (Some(here), Some(there)) if (here.0, here.1) == (there.0, there.1) => "wg",
            (Some(here), Some(there)) if here.0 == there.0 => "qf",
            _ => "dv",
        }
    }

    /// Adds a line to a column.
    pub fn push_line(&mut self, column: usize, line: impl Into<String>) {
        self.columns[column].push_line(line);
    }

    pub fn render(&self, name: &str) -> String {
        let statements = |statements: &[String]| {
            let all: String = statements.iter().map(|statement| format!("{statement}; ")).collect();
            format!("{{ {all}}}\n")
        };
        let head = |(index, column): (usize, &ProgramColumn)| match column.placement {
            Some((family, workgroup, subgroup)) => {
                format!("P{index}@sg {subgroup}, wg {workgroup}, qf {family}")
            }
            None => format!("P{index}@host"),
        };
        let mut text = format!("VULKAN {name}\n{}", statements(&self.declarations));
        if !self.system_sync.is_empty() {
            text.push_str(&statements(&self.system_sync));
        }
        let heads = self.columns.iter().enumerate().map(head);
        let columns =
            heads.zip(&self.columns).map(|(head, column)| [vec![head], column.lines.clone()].concat());
        text.push_str(&render_rows(&columns.collect::<Vec<_>>()));
        if let Some(filter) = &self.filter {
            text.push_str(&format!("filter ({filter})\n"));
        }
        text + &format!("exists ({})\n", self.question)
    }
}

/// The rows of a test, from the column of each thread with its head.
pub fn render_rows(columns: &[Vec<String>]) -> String {
    // A thread needs a row, though it does nothing.
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).map_or("", String::as_str));
        cells.collect::<Vec<_>>().join(" | ") + " ;\n"
    };
    (0..rows).map(row).collect()
}
