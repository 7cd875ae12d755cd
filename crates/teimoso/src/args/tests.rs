use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

fn refused(line: &str) -> ErrorKind {
    parse(line).expect_err(line).kind()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn serve_has_the_documented_defaults() {
    let Command::Serve(args) = parse("teimoso serve").expect("parses").command else { panic!("not serve") };
    assert_eq!(args.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(args.store, StoreLocation::Directory("./teimoso-data".into()));
    assert_eq!(args.policy, None);
    assert_eq!(args.attempt_lines, AttemptLines::All);
    assert_eq!((args.retention, args.durability), (None, None));
    assert_eq!((args.max_payload, args.in_flight.get()), (1 << 20, 1_024));
    assert_eq!(args.attempt_timeout, None);
    assert!(!args.insecure_no_auth && args.allow_net.is_empty());
    assert!(!args.workers_only && !args.allow_volatile && !args.allow_eviction);
    assert_eq!(args.redis_prefix, "webhooks");
}

#[test]
fn serve_takes_several_networks() {
    let line = "teimoso serve --allow-net 127.0.0.0/8 --allow-net fd00::/8 --store memory:";
    let Command::Serve(args) = parse(line).expect("parses").command else { panic!("not serve") };
    let nets: Vec<_> = args.allow_net.iter().map(ToString::to_string).collect();
    assert_eq!(nets, ["127.0.0.0/8", "fd00::/8"]);
    assert_eq!(args.store, StoreLocation::Memory);
}

#[test]
fn values_are_refused_at_the_edge() {
    let lines = [
        "teimoso serve --listen 8080",
        "teimoso serve --store http://127.0.0.1",
        "teimoso serve --policy standard",
        "teimoso serve --allow-net 127.0.0.1/99",
        "teimoso serve --retention 0s",
        "teimoso serve --max-payload 1GiB",
        "teimoso serve --in-flight 0",
        "teimoso serve --attempt-timeout 25s",
        "teimoso send http://x --data @",
        "teimoso send http://x --header nocolon",
        "teimoso send http://x --at tomorrow",
        "teimoso events list --server ftp://x",
        "teimoso events list --store memory:",
        "teimoso events list --store mysql://x",
        "teimoso send http://x --store d --allow-net 10.0.0.0/99",
        "teimoso dead replay --all --rate 10001/s",
        "teimoso policy show webhook --attempts 0",
        "teimoso policy show nothing",
        "teimoso request GET http://x --policy nothing",
        "teimoso request GET http://x --retry 1001",
        "teimoso request GET http://x -m 0",
        "teimoso request GET http://x --connect-timeout 5x",
        "teimoso request GET http://x --max-filesize 1mb",
    ];
    for line in lines {
        assert_eq!(refused(line), ErrorKind::ValueValidation, "{line}");
    }
    assert_eq!(refused("teimoso deliveries list --state alive"), ErrorKind::InvalidValue);
    assert_eq!(refused("teimoso dead replay --reason old"), ErrorKind::InvalidValue);
    assert_eq!(refused("teimoso events list --limit 0"), ErrorKind::ValueValidation);
}

#[test]
fn serve_and_its_commands_take_a_redis() {
    let redis = |line: &str| match parse(line).expect("parses").command {
        Command::Serve(args) => Some(args.store.to_string()),
        Command::Events(EventsArgs { command: EventsCommand::List { server, .. } }) => {
            server.store.map(|store| store.to_string())
        }
        _ => None,
    };
    let shown = Some("redis://h:1/2".to_owned());
    assert_eq!(redis("teimoso serve --store redis://ana:segredo@h:1/2 --durability disk"), shown);
    assert_eq!(redis("teimoso events list --store redis://ana:segredo@h:1/2"), shown);
    assert_eq!(refused("teimoso serve --store redis://h --durability all"), ErrorKind::InvalidValue);
}

#[test]
fn s2_12_send_without_a_url_is_a_usage_error() {
    assert_eq!(refused("teimoso send"), ErrorKind::MissingRequiredArgument);
    assert!(parse("teimoso send --ndjson -").is_ok());
    assert!(parse("teimoso send http://x --ndjson -").is_ok());
}

#[test]
fn s2_12_send_has_the_default_body() {
    let Command::Send(args) = parse("teimoso send http://x").expect("parses").command else {
        panic!("not send")
    };
    let body = r#"{"tipo":"pedido.pago","pedido":1234,"valor":99.9}"#;
    assert_eq!(args.data, DataSource::Inline(body.to_owned()));
}

#[test]
fn send_refuses_what_contradicts_itself() {
    let lines = [
        "teimoso send http://x --at 2026-01-01T00:00:00Z --after 1s",
        "teimoso send --ndjson - --wait",
        "teimoso send --ndjson - --data {}",
        "teimoso send http://x --server http://y --store d",
    ];
    for line in lines {
        assert_eq!(refused(line), ErrorKind::ArgumentConflict, "{line}");
    }
}

#[test]
fn g12_only_a_store_of_ones_own_can_be_told_where_events_may_go() {
    assert_eq!(refused("teimoso send http://x --allow-net 10.0.0.0/8"), ErrorKind::MissingRequiredArgument);
    assert!(parse("teimoso send http://x --store d --allow-net 10.0.0.0/8").is_ok());
}

#[test]
fn a_replay_says_which() {
    assert_eq!(refused("teimoso dead replay"), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("teimoso dead replay dlv_1 --all"), ErrorKind::ArgumentConflict);
    assert_eq!(refused("teimoso dead replay --all --reason poison"), ErrorKind::ArgumentConflict);
    for other in ["dlv_1", "--all", "--dry-run", "--rate 5/s"] {
        let line = format!("teimoso dead replay --cancel rpl_1 {other}");
        assert_eq!(refused(&line), ErrorKind::ArgumentConflict, "{line}");
    }
    assert!(parse("teimoso dead replay --cancel rpl_1").is_ok());
    assert!(parse("teimoso dead replay --reason poison --since 2h --rate 5/s --yes").is_ok());
}

#[test]
fn header_lines_are_validated_and_trimmed() {
    let line: HeaderLine = "X-Api-Key:  a: b ".parse().expect("a header");
    assert_eq!(line, HeaderLine { name: "x-api-key".to_owned(), value: "a: b".to_owned() });
    assert!("bad name: x".parse::<HeaderLine>().is_err());
    assert!("name: a\nb".parse::<HeaderLine>().is_err());
}

#[test]
fn request_has_the_documented_defaults_and_refuses_what_contradicts_itself() {
    let Command::Request(args) = parse("teimoso request GET http://x").expect("parses").command else {
        panic!("not request")
    };
    assert_eq!((args.policy.name(), args.max_redirs, args.max_filesize), ("standard", 50, 256 << 20));
    assert_eq!((args.retry, args.max_time, args.location), (None, None, false));
    let lines = [
        "teimoso request GET http://x --http1.1 --http2",
        "teimoso request GET http://x -i --json",
        "teimoso request GET http://x -d a --data-raw b",
    ];
    for line in lines {
        assert_eq!(refused(line), ErrorKind::ArgumentConflict, "{line}");
    }
}

#[test]
fn what_may_be_secret_is_never_printed_for_debugging() {
    let line = "teimoso request s3cret http://s3cret -H s3cret -d s3cret -x s3cret -u s3cret";
    assert!(!format!("{:?}", parse(line).expect("parses")).contains("s3cret"));
}

#[test]
fn the_language_may_stand_anywhere() {
    for line in ["teimoso --lang pt-BR policy list", "teimoso policy list --lang pt-BR"] {
        assert_eq!(parse(line).expect("parses").lang, Some(Language::Portuguese), "{line}");
    }
}
