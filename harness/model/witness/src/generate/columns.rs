//! Builder of a program as columns of lines.

use super::grammar::render_rows;

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
