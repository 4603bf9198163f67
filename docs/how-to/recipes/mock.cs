// C# tests with Confluent.Kafka against a mock Kafka cluster each: copy the class Mock into your tests.
//
//   uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'
//
// puts `mockbroker` on PATH, and so does `pipx install`. As a program of its own:
//
//   dotnet new console && rm Program.cs && dotnet add package Confluent.Kafka && dotnet run
//
// System.Text.Json does what Texts does here, where it is at hand: Mono lacks it.

using System;
using System.Diagnostics;
using System.Net.Http;
using System.Text;
using System.Text.RegularExpressions;
using Confluent.Kafka;

/// A running cluster, which ends when this is disposed.
public sealed class Mock : IDisposable
{
    // One server for the process. It ends when its standard input closes: when this process ends.
    private static readonly Lazy<Process> Server = new Lazy<Process>(() => Process.Start(
        new ProcessStartInfo("mockbroker", "serve --no-cluster --control 127.0.0.1:0 --exit-on-stdin-eof")
        {
            UseShellExecute = false,
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
        }));

    private static readonly Lazy<HttpClient> Control = new Lazy<HttpClient>(() => new HttpClient
    {
        BaseAddress = new Uri(Texts(Server.Value.StandardOutput.ReadLine(), "control")[0]),
        Timeout = TimeSpan.FromMinutes(2),
    });

    private readonly string path;
    public string Bootstrap { get; }

    /// Starts a cluster with these options of POST /clusters, as JSON.
    public Mock(string options)
    {
        string answer = Send("POST", "/clusters?timeout=1m", options);
        path = "/clusters/" + Texts(answer, "id")[0];
        Bootstrap = Texts(answer, "bootstrap")[0];
    }

    /// One request to the control port of the cluster. Returns the body of its answer.
    public string Ask(string method, string more, string body = null) => Send(method, path + more, body);

    public void Dispose() => Send("DELETE", path, null);

    private static string Send(string method, string path, string body)
    {
        var request = new HttpRequestMessage(new HttpMethod(method), path);
        if (body != null)
        {
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
        }
        var answer = Control.Value.SendAsync(request).GetAwaiter().GetResult();
        string text = answer.Content.ReadAsStringAsync().GetAwaiter().GetResult();
        if (!answer.IsSuccessStatusCode)
        {
            throw new InvalidOperationException($"{method} {path}: {text}");
        }
        return text;
    }

    /// The texts of the members of this name, where no text has quotes in it.
    public static string[] Texts(string json, string name)
    {
        var found = Regex.Matches(json, $"\"{name}\": \"([^\"]*)\"");
        var texts = new string[found.Count];
        for (int i = 0; i < texts.Length; i++)
        {
            texts[i] = found[i].Groups[1].Value;
        }
        return texts;
    }
}

public static class Program
{
    public static void Main()
    {
        using (var mock = new Mock("{\"topics\": [\"foo:1:3\"]}"))
        {
            try
            {
                ALostAnswerMakesNoDuplicate(mock);
            }
            catch
            {
                Console.Error.WriteLine(mock.Ask("GET", "/journal?last=200"));
                throw;
            }
        }
    }

    private static void ALostAnswerMakesNoDuplicate(Mock mock)
    {
        mock.Ask("POST", "/faults", "{\"api\": \"Produce\", \"disconnect\": \"after\", \"times\": 1}");
        var configs = new ProducerConfig { BootstrapServers = mock.Bootstrap, EnableIdempotence = true };
        using (var producer = new ProducerBuilder<Null, string>(configs).Build())
        {
            producer.ProduceAsync("foo", new Message<Null, string> { Value = "a" }).GetAwaiter().GetResult();
        }
        // It sent the request again, and the log has one record.
        string requests = mock.Ask("GET", "/journal?api=Produce&direction=request");
        Same(2, Regex.Matches(requests, "\"timestamp_ns\"").Count);
        Same(1, Mock.Texts(mock.Ask("GET", "/logs/foo-0/records"), "value").Length);

        var options = new ConsumerConfig
        {
            BootstrapServers = mock.Bootstrap,
            GroupId = "g",
            AutoOffsetReset = AutoOffsetReset.Earliest,
        };
        using (var consumer = new ConsumerBuilder<Ignore, string>(options).Build())
        {
            consumer.Subscribe("foo");
            Same("a", consumer.Consume(TimeSpan.FromMinutes(1)).Message.Value);
            consumer.Close();
        }
        Console.WriteLine("It was sent twice, stored once, and consumed.");
    }

    private static void Same(object expected, object found)
    {
        if (!expected.Equals(found))
        {
            throw new InvalidOperationException($"{found}, not {expected}");
        }
    }
}
