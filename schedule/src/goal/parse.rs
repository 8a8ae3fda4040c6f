//! Parses GOAL text. Errors name the line.

use super::{Goal, GoalOp, OpKind};
use crate::ScheduleError;
use std::collections::HashMap;
use std::num::{IntErrorKind, ParseIntError};

/// The state of the parser.
#[derive(Default)]
struct GoalParser {
    goal: Goal,
    /// The number of ranks that the text declares.
    ranks: Option<usize>,
    /// The line in which the open rank began; `None` if no rank is open.
    open: Option<usize>,
    /// Labels of the open rank.
    labels: HashMap<String, usize>,
    is_comment: bool,
}

/// Parses a text. Errors name the line.
pub fn parse(text: &str) -> Result<Goal, ScheduleError> {
    read(text).map_err(ScheduleError::Text)
}

fn read(text: &str) -> Result<Goal, String> {
    let mut reading = GoalParser::default();
    let mut last = 0;
    for (number, line) in text.lines().enumerate() {
        last = number + 1;
        let line = reading.without_comments(line).map_err(|why| format!("line {last}: {why}"))?;
        reading.line(&line, last).map_err(|why| format!("line {last}: {why}"))?;
    }
    if reading.is_comment {
        return Err(format!("line {last}: a comment is not closed by \"*/\""));
    }
    if let Some(line) = reading.open {
        return Err(format!("line {last}: the rank that begins in line {line} is not closed by \"}}\""));
    }
    let ranks = reading.ranks.ok_or("the line \"num_ranks N\" is missing")?;
    if reading.goal.ranks.len() != ranks {
        return Err(format!(
            "line {last}: the text ends after {} of {ranks} ranks",
            reading.goal.ranks.len()
        ));
    }
    Ok(reading.goal)
}

impl GoalParser {
    /// The line without `// ..` and `/* .. */`.
    fn without_comments(&mut self, line: &str) -> Result<String, String> {
        let (mut kept, mut rest) = (String::new(), line);
        loop {
            if self.is_comment {
                let Some((_, behind)) = rest.split_once("*/") else { return Ok(kept) };
                (self.is_comment, rest) = (false, behind);
            }
            let (line, block) = (rest.find("//"), rest.find("/*"));
            match (line, block) {
                (Some(line), block) if block.is_none_or(|block| line < block) => {
                    return Ok(kept + &rest[..line]);
                }
                (_, Some(block)) => {
                    kept += &rest[..block];
                    (self.is_comment, rest) = (true, &rest[block + 2..]);
                }
                _ => return Ok(kept + rest),
            }
        }
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        let spaced = line.replace(':', " : ").replace('{', " { ").replace('}', " } ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        match (&words[..], self.open) {
            ([], _) => Ok(()),
            (["num_ranks", count], None) if self.ranks.is_none() => {
                let count = whole(count)?;
                self.ranks = Some(
                    usize::try_from(count)
                        .ok()
                        .filter(|&count| count > 0)
                        .ok_or("num_ranks must be at least 1")?,
                );
                Ok(())
            }
            (["rank", rank, "{"], None) => self.begin(whole(rank)?, number),
            (["}"], Some(_)) => {
                self.open = None;
                Ok(())
            }
            ([one, word @ ("requires" | "irequires"), other], Some(_)) => self.depend(one, word, other),
            ([label, ":", operation @ ..], Some(_)) => self.operation(Some(label), operation),
            (operation, Some(_)) => self.operation(None, operation),
            (words, None) => Err(format!(
                "{:?} is not allowed here: outside of ranks, a line is \"num_ranks N\", once and first, or \
                 \"rank N {{\"",
                words.join(" ")
            )),
        }
    }

    fn begin(&mut self, rank: u64, number: usize) -> Result<(), String> {
        let ranks = self.ranks.ok_or("\"num_ranks N\" must come before the first rank")?;
        let next = self.goal.ranks.len();
        if rank as usize != next || next >= ranks {
            return Err(format!(
                "rank {rank} cannot come after {next} of {ranks} ranks: ranks are in order, from 0 on"
            ));
        }
        self.goal.ranks.push(Vec::new());
        self.labels.clear();
        self.open = Some(number);
        Ok(())
    }

    fn operation(&mut self, label: Option<&str>, words: &[&str]) -> Result<(), String> {
        let does = match words {
            ["send", bytes, "to", to, rest @ ..] => {
                let tag = options(rest, true)?;
                OpKind::Send { bytes: size(bytes)?, to: self.rank(to)?, tag }
            }
            ["recv", bytes, "from", from, rest @ ..] => {
                let tag = options(rest, true)?;
                OpKind::Recv { bytes: size(bytes)?, from: self.rank(from)?, tag }
            }
            ["calc", units, rest @ ..] => {
                options(rest, false)?;
                OpKind::Calc { units: whole(units)? }
            }
            words => {
                let words = words.join(" ");
                return Err(format!(
                    "{words:?} is no operation: expected \"send Bb to R tag T\", \"recv Bb from R tag T\", \
                     \"calc N\", \"L requires L\" or \"L irequires L\""
                ));
            }
        };
        let own = self.goal.ranks.last_mut().ok_or("an operation must be inside a rank")?;
        let label = label.map_or_else(String::new, ToString::to_string);
        if !label.is_empty() {
            let is_name = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || !label.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(format!(
                    "{label:?} is no label: a label begins with a letter, and has only letters, digits and _"
                ));
            }
            if self.labels.insert(label.clone(), own.len()).is_some() {
                return Err(format!("label {label} is used twice in this rank"));
            }
        }
        own.push(GoalOp { label, does, requires: Vec::new(), irequires: Vec::new() });
        Ok(())
    }

    fn depend(&mut self, one: &str, word: &str, other: &str) -> Result<(), String> {
        let find = |label: &str| {
            let found = self.labels.get(label).copied();
            found.ok_or_else(|| format!("no operation above in this rank has the label {label}"))
        };
        let (one, other) = (find(one)?, find(other)?);
        let operation =
            self.goal.ranks.last_mut().and_then(|own| own.get_mut(one)).ok_or("no rank is open")?;
        if word == "requires" { &mut operation.requires } else { &mut operation.irequires }.push(other);
        Ok(())
    }

    fn rank(&self, word: &str) -> Result<usize, String> {
        let ranks = self.ranks.unwrap_or(0);
        let rank = usize::try_from(whole(word)?).ok().filter(|&rank| rank < ranks);
        rank.ok_or_else(|| format!("there is no rank {word}: num_ranks is {ranks}"))
    }
}

/// The tag after an operation; 0 if there is none, as in the simulator.
fn options(words: &[&str], has_tag: bool) -> Result<u32, String> {
    let mut tag = 0;
    for pair in words.chunks(2) {
        match pair {
            ["tag", number] if has_tag => {
                tag = whole(number)?.try_into().map_err(|_| format!("tag {number} exceeds 32 bits"))?;
            }
            ["cpu" | "nic", number] => drop(whole(number)?),
            _ => return Err(format!("{:?} is no option of this operation", pair.join(" "))),
        }
    }
    Ok(tag)
}

fn size(word: &str) -> Result<u64, String> {
    word.strip_suffix('b').ok_or_else(|| format!("{word:?} is no size: 8 bytes are 8b")).and_then(whole)
}

fn whole(word: &str) -> Result<u64, String> {
    if word == "-1" {
        return Err("-1, which stands for any rank or tag, is not supported".into());
    }
    word.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("{word} is too large"),
        _ => format!("{word:?} is no whole number"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line() {
        let wrong = [
            ("", "num_ranks"),
            ("rank 0 {\n}", "line 1: \"num_ranks N\" must come before"),
            ("num_ranks 0", "line 1: num_ranks must be at least 1"),
            ("num_ranks two", "line 1: \"two\" is no whole number"),
            ("num_ranks 99999999999999999999", "line 1: 99999999999999999999 is too large"),
            ("num_ranks 2\nrank 0 {\n}", "line 3: the text ends after 1 of 2 ranks"),
            ("num_ranks 1\nrank 1 {\n}", "line 2: rank 1 cannot come after 0 of 1 ranks"),
            ("num_ranks 1\nrank 0 {\na: calc 1", "line 3: the rank that begins in line 2 is not closed"),
            ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", "line 4: label a is used twice"),
            ("num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}", "line 4: no operation above"),
            ("num_ranks 1\nrank 0 {\na: send 8b to 1 tag 0\n}", "line 3: there is no rank 1: num_ranks is 1"),
            ("num_ranks 1\nrank 0 {\na: send 8 to 0\n}", "line 3: \"8\" is no size"),
            ("num_ranks 1\nrank 0 {\na: recv 8b from -1\n}", "line 3: -1, which stands for any"),
            ("num_ranks 1\nrank 0 {\n1a: calc 1\n}", "line 3: \"1a\" is no label"),
            ("num_ranks 1\nrank 0 {\na: wait 8\n}", "line 3: \"wait 8\" is no operation"),
            ("num_ranks 1\nrank 0 {\na: calc 8 tag 3\n}", "line 3: \"tag 3\" is no option"),
            ("num_ranks 1\nrank 0 {\na: send 8b to 0 tag 4294967296\n}", "line 3: tag 4294967296"),
            ("num_ranks 1\n/* rank 0 {\n}", "line 3: a comment is not closed"),
        ];
        for (text, expected) in wrong {
            let why = read(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn comments_and_options_are_ignored() {
        let text =
            "// a /* b\nnum_ranks 1 // one\nrank 0 { /* c\n */\nl1:calc 7 cpu 1\nsend 8b to 0 tag 3 nic 1\n}";
        let goal = parse(text).unwrap();
        assert_eq!(goal.ranks[0][0].does, OpKind::Calc { units: 7 });
        assert_eq!(goal.ranks[0][1].does, OpKind::Send { bytes: 8, to: 0, tag: 3 });
    }
}
