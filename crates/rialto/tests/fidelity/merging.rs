//! Several servers as one: names, order, what is hidden, and whose answer is whose.

use torture::stage::Stage;
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(prefixes_always_conflict_never),
    case!(hidden_tools_are_neither_listed_nor_called),
    case!(the_order_is_the_same_every_time),
    case!(a_server_is_asked_for_its_list_once_for_all_pages),
    case!(long_names_are_cut_and_still_lead_home),
    case!(names_that_become_equal_stay_apart),
    case!(the_name_of_a_tool_does_not_depend_on_the_order_of_the_list),
    case!(prompts_are_prefixed_and_completed),
    case!(batches_of_interleaved_calls_find_their_answers),
    case!(interleaved_calls_find_their_answers),
    case!(a_tool_that_nobody_has_is_refused),
];

const VERSION: &str = "2025-06-18";

/// The names in a list result.
fn names(listed: &Line, key: &str) -> Vec<String> {
    let items: Vec<serde_json::Value> = serde_json::from_str(&listed.raw(&["result", key])).unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

fn tools(names: &[&str]) -> String {
    let items: Vec<_> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
    format!(r#""result":{{"tools":[{}]}}"#, items.join(","))
}

fn prefixes_always_conflict_never() {
    for (prefix, expected, shared, reached) in [
        ("always", vec!["alpha__own", "alpha__same", "beta__same", "beta__other"], "beta__same", "beta"),
        ("conflict", vec!["own", "alpha__same", "beta__same", "other"], "beta__same", "beta"),
        ("never", vec!["own", "same", "other"], "same", "alpha"),
    ] {
        let stage = Stage::new();
        let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
        alpha.answers("tools/list", &tools(&["own", "same"]));
        beta.answers("tools/list", &tools(&["same", "other"]));
        alpha.answers("tools/call", r#""result":{"from":"alpha"}"#);
        beta.answers("tools/call", r#""result":{"from":"beta"}"#);
        let mut gateway = stage.gateway(&[&alpha, &beta], &["--prefix", prefix]);
        gateway.begin(VERSION);
        assert_eq!(names(&gateway.ask("1", "tools/list", "{}"), "tools"), expected, "{prefix}");
        gateway.call("2", shared);
        assert_eq!(gateway.answer("2").raw(&["result", "from"]), format!("\"{reached}\""), "{prefix}");
    }
}

fn hidden_tools_are_neither_listed_nor_called() {
    let stage = Stage::new();
    let (mut alpha, mut beta) = (stage.server("alpha"), stage.server("beta"));
    for server in [&alpha, &beta] {
        server.answers("tools/list", &tools(&["read_a", "read_secret", "write"]));
        server.answers("tools/call", r#""result":{"ran":true}"#);
    }
    alpha.settings = r#"allow = ["read_*"]"#.to_owned() + "\n" + r#"deny = ["read_secret"]"#;
    beta.settings = r#"deny = ["*secret"]"#.to_owned();
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let listed = names(&gateway.ask("1", "tools/list", "{}"), "tools");
    assert_eq!(listed, ["alpha__read_a", "beta__read_a", "beta__write"]);
    for (id, tool, runs) in [
        ("2", "alpha__read_a", true),
        ("3", "alpha__read_secret", false),
        ("4", "alpha__write", false),
        ("5", "beta__read_secret", false),
        ("6", "beta__write", true),
        ("7", "read_secret", false),
    ] {
        gateway.call(id, tool);
        let answer = gateway.answer(id);
        assert_eq!(answer.find(&["result", "ran"]).is_some(), runs, "{tool}");
        assert!(answer.find(&["error", "code"]).is_none_or(|code| code == "-32602"), "{tool}");
    }
}

fn the_order_is_the_same_every_time() {
    let stage = Stage::new();
    let servers = [stage.server("zeta"), stage.server("alpha"), stage.server("mid")];
    for server in &servers {
        server.answers("tools/list", &tools(&["z", "a", "m", "b"]));
    }
    let mut first = None;
    for run in 0..20 {
        let mut gateway = stage.gateway(&[&servers[0], &servers[1], &servers[2]], &[]);
        gateway.begin(VERSION);
        let listed = gateway.ask("1", "tools/list", "{}").0;
        assert_eq!(*first.get_or_insert(listed.clone()), listed, "run {run}");
    }
    let listed = names(&Line(first.unwrap()), "tools");
    assert_eq!(listed[..5], ["zeta__z", "zeta__a", "zeta__m", "zeta__b", "alpha__z"], "as configured, as listed");
}

/// To ask for each page would cost as much as the whole list each time, and the pages would be of different lists.
fn a_server_is_asked_for_its_list_once_for_all_pages() {
    let stage = Stage::new();
    let server = stage.server("s");
    // It does not tell of changes, so it is asked whenever somebody wants a list.
    let silent = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    server.answers("initialize", silent);
    let all: Vec<_> = (0..2500).map(|number| format!("t{number}")).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    server.answers("tools/list", &tools(&all));
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut listed = Vec::new();
    let mut cursor = "{}".to_owned();
    for (page, id) in ["1", "2", "3"].into_iter().enumerate() {
        let line = gateway.ask(id, "tools/list", &cursor);
        assert!(line.find(&["error"]).is_none(), "page {page}: {}", line.0);
        listed.extend(names(&line, "tools"));
        cursor = line.find(&["result", "nextCursor"]).map_or_else(String::new, |at| format!(r#"{{"cursor":{at}}}"#));
        // Another list from now on.
        server.answers("tools/list", &tools(&["other"]));
    }
    assert_eq!((listed.len(), cursor.as_str()), (2500, ""));
    assert_eq!(names(&gateway.ask("4", "tools/list", "{}"), "tools"), ["other"], "a new list is a new question");
}

fn long_names_are_cut_and_still_lead_home() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let long = "t".repeat(70);
    let (one, two) = (format!("{long}1"), format!("{long}2"));
    alpha.answers("tools/list", &tools(&[&one, &two, "do.it:now", "é"]));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    let listed = names(&gateway.ask("1", "tools/list", "{}"), "tools");
    let is_safe =
        |name: &String| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    assert!(listed.iter().all(is_safe), "{listed:?}");
    for (place, own) in [one.as_str(), &two, "do.it:now", "é"].into_iter().enumerate() {
        let id = format!("\"{place}\"");
        gateway.call(&id, &listed[place]);
        let request = life.take("tools/call");
        assert_eq!(request.raw(&["params", "name"]), format!("\"{own}\""));
        life.reply(&request, r#""result":{}"#);
        gateway.answer(&id);
    }
}

fn names_that_become_equal_stay_apart() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.answers("tools/list", &tools(&["do.it", "do_it", "do it"]));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    let listed = names(&gateway.ask("1", "tools/list", "{}"), "tools");
    assert_eq!(listed.len(), 4);
    for (place, own) in ["do.it", "do_it", "do it"].into_iter().enumerate() {
        let id = format!("\"{place}\"");
        gateway.call(&id, &listed[place]);
        let request = life.take("tools/call");
        assert_eq!(request.raw(&["params", "name"]), format!("\"{own}\""), "{listed:?}");
        life.reply(&request, r#""result":{}"#);
        gateway.answer(&id);
    }
}

/// People and policies refer to tools by these names: a server that lists in another order must not swap two tools.
fn the_name_of_a_tool_does_not_depend_on_the_order_of_the_list() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut meanings = Vec::new();
    for order in [["do.it", "do_it"], ["do_it", "do.it"]] {
        alpha.answers("tools/list", &tools(&order));
        let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
        gateway.begin(VERSION);
        let listed = names(&gateway.ask("1", "tools/list", "{}"), "tools");
        let mut meaning: Vec<_> = order.iter().zip(listed).map(|(own, public)| (*own, public)).collect();
        meaning.sort_unstable();
        meanings.push(meaning);
    }
    assert_eq!(meanings[0], meanings[1]);
}

fn prompts_are_prefixed_and_completed() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    for server in [&alpha, &beta] {
        server.answers(
            "initialize",
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"completions":{}},"serverInfo":{"name":"p","version":"1"}}"#,
        );
        server.answers("prompts/list", r#""result":{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}"#);
    }
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = beta.life();
    assert_eq!(names(&gateway.ask("1", "prompts/list", "{}"), "prompts"), ["alpha__p", "beta__p"]);
    let line =
        r#"{"jsonrpc":"2.0","id":$ID,"method":"prompts/get","params":{"name":"$NAME","arguments":{"a":"\/"},"v":1.0}}"#;
    gateway.send(&line.replace("$ID", "2").replace("$NAME", "beta__p"));
    let request = life.take("prompts/get");
    assert_eq!(request.0, line.replace("$ID", &request.id()).replace("$NAME", "p"));
    let line = r#"{"jsonrpc":"2.0","id":$ID,"method":"completion/complete","params":{"argument":{"name":"a","value":""},"ref":{"x":1.0,"name":"$NAME","type":"ref/prompt"},"context":{"arguments":{}}}}"#;
    gateway.send(&line.replace("$ID", "3").replace("$NAME", "beta__p"));
    let request = life.take("completion/complete");
    assert_eq!(request.0, line.replace("$ID", &request.id()).replace("$NAME", "p"));
}

fn batches_of_interleaved_calls_find_their_answers() {
    let stage = Stage::new();
    let servers = [stage.server("alpha"), stage.server("beta"), stage.server("gamma")];
    let mut gateway = stage.gateway(&[&servers[0], &servers[1], &servers[2]], &[]);
    gateway.begin("2025-03-26");
    let mut lives: Vec<_> = servers.iter().map(|server| server.life()).collect();
    let batch = |round: usize| {
        let members: Vec<_> = (0..64)
            .map(|place| {
                let server = &servers[place % 3].name;
                let id = round * 64 + place;
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{server}__x","arguments":{{"n":{id}}}}}}}"#)
            })
            .collect();
        format!("[{}]", members.join(","))
    };
    gateway.send(&batch(0));
    gateway.send(&batch(1));
    for (place, life) in lives.iter_mut().enumerate() {
        let own = (0..64).filter(|call| call % 3 == place).count() * 2;
        let mut requests: Vec<_> = (0..own).map(|_| life.take("tools/call")).collect();
        // Odd ones first, each part backwards: no order that the gateway could have meant.
        requests.sort_by_key(|request| {
            (request.id().parse::<u64>().unwrap() % 2, std::cmp::Reverse(request.id().parse::<u64>().unwrap()))
        });
        for request in requests {
            let number = request.raw(&["params", "arguments", "n"]);
            life.reply(&request, &format!(r#""result":{{"n":{number},"from":"{}"}}"#, servers[place].name));
        }
    }
    let mut seen = Vec::new();
    for _ in 0..2 {
        let answers: Vec<serde_json::Value> = serde_json::from_str(&gateway.batch().0).unwrap();
        assert_eq!(answers.len(), 64);
        for answer in answers {
            let id = answer["id"].as_u64().unwrap();
            assert_eq!(answer["result"]["n"], id);
            assert_eq!(answer["result"]["from"], servers[usize::try_from(id % 64).unwrap() % 3].name.as_str());
            seen.push(id);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..128).collect::<Vec<_>>());
}

fn interleaved_calls_find_their_answers() {
    let stage = Stage::new();
    let servers = [stage.server("alpha"), stage.server("beta"), stage.server("gamma")];
    let mut gateway = stage.gateway(&[&servers[0], &servers[1], &servers[2]], &[]);
    gateway.begin(VERSION);
    let mut lives: Vec<_> = servers.iter().map(|server| server.life()).collect();
    for number in 0..128 {
        gateway.call(&format!("\"{number}\""), &format!("{}__x", servers[number % 3].name));
    }
    for (place, life) in lives.iter_mut().enumerate() {
        let own: Vec<_> = (0..128).filter(|call| call % 3 == place).collect();
        let requests: Vec<_> = own.iter().map(|_| life.take("tools/call")).collect();
        // Requests of one client to one server keep their order, so the n-th is the n-th.
        for (request, number) in requests.iter().zip(own).rev() {
            life.reply(request, &format!(r#""result":{{"n":{number}}}"#));
        }
    }
    for number in 0..128 {
        assert_eq!(gateway.answer(&format!("\"{number}\"")).raw(&["result", "n"]), number.to_string());
    }
}

fn a_tool_that_nobody_has_is_refused() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    for (id, tool) in [("1", "x"), ("2", "gamma__x"), ("3", "alpha__y"), ("4", ""), ("5", "alpha__")] {
        gateway.call(id, tool);
        assert_eq!(gateway.answer(id).raw(&["error", "code"]), "-32602", "{tool}");
    }
}
