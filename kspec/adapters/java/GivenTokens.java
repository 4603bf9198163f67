import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** Gives the tokens of a {@code connect} to the client's login, one after the other; the last one again and again. */
public final class GivenTokens implements AuthenticateCallbackHandler {
    private static final String OPTION = "tokens";

    private final List<JsonNode> tokens = new ArrayList<>();

    /** The config that lets a login take these tokens. Clients share a login if they have the same one. */
    static String jaasConfig(JsonNode tokens) {
        byte[] text = tokens.toString().getBytes(StandardCharsets.UTF_8);
        return String.format(
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required %s=\"%s\";",
            OPTION, Base64.getUrlEncoder().encodeToString(text));
    }

    @Override
    public void configure(
            Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        String text = (String) entries.get(0).getOptions().get(OPTION);
        try {
            new ObjectMapper().readTree(Base64.getUrlDecoder().decode(text)).forEach(tokens::add);
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(unreadable);
        }
    }

    @Override
    public synchronized void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
            if (each instanceof OAuthBearerTokenCallback wanted) {
                JsonNode next = tokens.size() > 1 ? tokens.remove(0) : tokens.get(0);
                if (next.isNull()) {
                    wanted.error("no_token", "there is no token", null);
                } else {
                    wanted.token(new Token(next));
                }
            }
        }
    }

    @Override
    public void close() {
        // nothing to end
    }

    private record Token(JsonNode given) implements OAuthBearerToken {
        @Override
        public String value() {
            return given.get("token").asText();
        }

        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return given.get("expires_ms").asLong();
        }

        @Override
        public String principalName() {
            return given.get("principal").asText();
        }

        @Override
        public Long startTimeMs() {
            return null;
        }
    }
}
