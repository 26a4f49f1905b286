//! The exit codes of every command: a small closed list, so that scripts can tell what went wrong without reading text.

use std::process::ExitCode;

/// Why the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    Unexpected,
    Usage,
    NotAllowed,
    Unreachable,
    ToolSaidNo,
    Payment,
    Timeout,
    /// A number of the commands below `context`, which have a list of their own.
    Context(u8),
}

impl Exit {
    /// In the order of their numbers, as shown by `rialto --help`.
    pub(crate) const ALL: [Exit; 8] = [
        Exit::Ok,
        Exit::Unexpected,
        Exit::Usage,
        Exit::NotAllowed,
        Exit::Unreachable,
        Exit::ToolSaidNo,
        Exit::Payment,
        Exit::Timeout,
    ];

    /// The number given to the shell. These never change their meaning.
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::NotAllowed => 3,
            Exit::Unreachable => 4,
            Exit::ToolSaidNo => 5,
            Exit::Payment => 6,
            Exit::Timeout => 7,
            Exit::Context(number) => number,
        }
    }

    /// The word in the JSON error object when a failure has no more precise one.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Exit::Ok => "ok",
            Exit::Unexpected => "unexpected",
            Exit::Usage => "usage",
            Exit::NotAllowed => "not_allowed",
            Exit::Unreachable => "unreachable",
            Exit::ToolSaidNo => "tool_said_no",
            Exit::Payment => "payment",
            Exit::Timeout => "timeout",
            Exit::Context(_) => "context",
        }
    }

    /// One line for the help text.
    fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "done",
            Exit::Unexpected => "something unexpected",
            Exit::Usage => "wrong usage or configuration",
            Exit::NotAllowed => "not allowed",
            Exit::Unreachable => "a server, relay or wallet cannot be reached",
            Exit::ToolSaidNo => "the tool itself answered with an error",
            Exit::Payment => "payment needed or declined",
            Exit::Timeout => "took too long",
            Exit::Context(_) => "see `rialto context --help`",
        }
    }

    /// The section of `rialto --help`.
    pub(crate) fn help_section() -> String {
        let lines: Vec<String> =
            Self::ALL.iter().map(|exit| format!("  {}  {}", exit.number(), exit.meaning())).collect();
        format!("Exit codes:\n{}\n\n  `rialto context` has its own list: rialto context --help", lines.join("\n"))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.number())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn numbers_follow_the_order_of_the_list() {
        for (position, exit) in Exit::ALL.iter().enumerate() {
            assert_eq!(usize::from(exit.number()), position, "{exit:?}");
        }
    }
}
