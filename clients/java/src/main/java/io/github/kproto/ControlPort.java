package io.github.kproto;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Type;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;

/** Requests to the control port of a server or of one of its clusters. */
final class ControlPort {
    static final String TOKEN_VARIABLE = "MOCKBROKER_TOKEN";

    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private final URI base;
    private final String token;

    /** With the token of the environment, if there is one. */
    ControlPort(URI base) {
        this(base, System.getenv(TOKEN_VARIABLE));
    }

    ControlPort(URI base, String token) {
        this.base = base;
        this.token = token;
    }

    ControlPort ofCluster(String id) {
        return new ControlPort(URI.create(base + "/clusters/" + id), token);
    }

    <T> T get(String path, Type type) {
        return Json.read(send("GET", path, null, "application/json"), type);
    }

    String getText(String path) {
        return send("GET", path, null, "text/plain");
    }

    <T> T post(String path, Object body, Type type) {
        return Json.read(send("POST", path, body, "application/json"), type);
    }

    <T> T delete(String path, Type type) {
        return Json.read(send("DELETE", path, null, "application/json"), type);
    }

    /** A path with a query. */
    static String path(String path, Map<String, ?> query) {
        return query.entrySet().stream()
                .map(each -> each.getKey() + "=" + encoded(String.valueOf(each.getValue())))
                .collect(Collectors.joining("&", path + "?", ""));
    }

    /** A part of a path or of a query. */
    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private String send(String method, String path, Object body, String accepted) {
        var request = HttpRequest.newBuilder(URI.create(base + path))
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)))
                .header("Content-Type", "application/json")
                .header("Accept", accepted);
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        HttpResponse<String> response;
        try {
            response = CLIENT.send(request.build(), BodyHandlers.ofString());
        } catch (IOException error) {
            throw new UncheckedIOException("mockbroker does not answer at " + base + "; has it been killed?", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted in a request to mockbroker", error);
        }
        if (response.statusCode() >= 300) {
            throw new RefusedException(response.statusCode(), problem(response.body()));
        }
        return response.body();
    }

    private static String problem(String body) {
        try {
            return Json.parse(body) instanceof Map<?, ?> found ? String.valueOf(found.get("error")) : body;
        } catch (IllegalArgumentException notJson) {
            return body;
        }
    }
}
